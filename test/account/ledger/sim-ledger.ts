import type { AccountLog } from '../../../src/sinks/ledger/kafka-ledger.ts';
import type { GuestLog } from '../../../src/sinks/ledger/guest-log.ts';
import { ageMs } from '../../../src/sinks/ledger/ledger-entries.ts';
import type { LedgerEntry } from '../../../src/sinks/ledger/ledger-entries.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Message } from '../../../src/sinks/sink.ts';
import type { SimTime } from '../../sim/sim-time.ts';

interface Appended {
  readonly text: string;
  /** By the leader's clock, ms. */
  readonly at: number;
  readonly leaderEpoch: number;
  /** Whose it is; undefined where it is the account's own. */
  readonly guest?: string;
}

/** How long what is sent to Kafka is on its way, or whether it never comes. */
export interface Ways {
  /** Resolves when a step of a process may go on; never where it is dead. */
  readonly step: (what?: string) => Promise<void>;
  /** Whether Kafka can be reached just now. */
  readonly isCutOff: () => boolean;
  /** Writes what is committed beside an entry, with its producer. Default nowhere. */
  readonly publish?: (beside: readonly Message[]) => void;
}

/** The topic of ledgers, for one account: producers that fence each other, and a leader whose clock is its own. */
export class SimLedger {
  readonly #time: SimTime;
  readonly #entries: Appended[] = [];
  #epoch = 0;
  #owner: AccountLog | undefined;
  #leader = { epoch: 0, skewMs: 0 };

  constructor(time: SimTime) {
    this.#time = time;
  }

  /** Another broker leads, with another clock. */
  moveLeader(skewMs: number): void {
    this.#leader = { epoch: this.#leader.epoch + 1, skewMs };
  }

  /** Whether nobody has taken it over since this process did. */
  isOf(log: AccountLog): boolean {
    return this.#owner === log;
  }

  /** What one process has of it. */
  of({ step, isCutOff, publish }: Ways, now: () => number): AccountLog {
    let epoch = 0;
    /** Before which all is known, and where what was appended last ends. */
    let readTo = 0;
    let newest = 0;
    let isClosed = false;
    let queue: Promise<unknown> = Promise.resolve();
    const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
      const done = queue.then(work, work);
      queue = done.catch(() => undefined);
      return done;
    };
    const expectOpen = (): void => {
      if (isClosed)
        throw new CellarstreamError(
          'COMMIT_FAILED',
          'the ledger was closed before this entry was written',
        );
    };
    const expectReached = (): void => {
      if (isCutOff()) throw new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');
    };
    const expectOwn = (): void => {
      expectReached();
      if (epoch !== this.#epoch)
        throw new CellarstreamError('FENCED', 'another one has the ledger');
    };
    const write = (text: string): number => {
      expectOwn();
      const { epoch: leaderEpoch, skewMs } = this.#leader;
      return this.#entries.push({ text, at: this.#time.now() + skewMs, leaderEpoch });
    };
    /** To another partition: the producer may be fenced in between. */
    const writeBeside = async (beside: readonly Message[] = []): Promise<void> => {
      if (!publish || beside.length === 0) return;
      await step('beside');
      expectOwn();
      publish(beside);
    };
    const log: AccountLog = {
      claim: (text, beside) =>
        inTurn(async () => {
          expectOpen();
          await step('take over');
          expectReached();
          epoch = ++this.#epoch;
          this.#owner = undefined;
          await step('taken over');
          expectOpen();
          const end = write(text);
          await writeBeside(beside);
          await step('claimed');
          expectOwn();
          this.#owner = log;
          const claimedAt = now();
          await step('find the end');
          const known = this.#entries.slice();
          await step('read'); // until it is read
          expectReached();
          if (known.slice(end).some(isOwn)) {
            throw new CellarstreamError('FENCED', 'another one has claimed it since');
          }
          readTo = known.length;
          const claim = known[end - 1]!;
          const entries = known.slice(0, end - 1).filter(isOwn);
          const guests = newestOfGuests(known);
          const aged = agedAt(claim);
          return {
            entries: entries.map(aged),
            claimedAt,
            guestEntries: guests.map(aged),
            at: now(),
          };
        }),
      append: (text, beside) =>
        inTurn(async () => {
          await step('declare'); // it is produced
          const end = write(text);
          await writeBeside(beside);
          await step('declared'); // EndTxn is sent
          expectOwn();
          await step('committed'); // and answered
          expectReached();
          newest = end;
        }),
      guests: () =>
        inTurn(async () => {
          await step();
          const known = this.#entries.slice();
          await step();
          const guests = newestOfGuests(known.slice(readTo));
          readTo = known.length;
          return { guestEntries: guests.map(agedAt(known[newest - 1]!)), at: now() };
        }),
      close: async () => {
        isClosed = true;
        await queue;
      },
    };
    return log;
  }

  /** What a guest has of it. */
  guest(guest: string, { step, isCutOff }: Ways, now: () => number): GuestLog {
    const write = (text: string): number => {
      if (isCutOff()) throw new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');
      const { epoch: leaderEpoch, skewMs } = this.#leader;
      return this.#entries.push({ text, at: this.#time.now() + skewMs, leaderEpoch, guest });
    };
    return {
      declare: async (text) => {
        await step();
        write(text);
        await step();
        const at = now();
        await step(); // until it is read
        // As it is really read: until the text is seen, wherever that is.
        const isEntry = (one: Appended) => one.guest === guest && one.text === text;
        const seen = this.#entries.slice(0, this.#entries.findIndex(isEntry) + 1);
        const own = seen.findLast(isEntry)!;
        const before = seen.slice(0, seen.indexOf(own));
        const services = before.filter(isOwn);
        const guests = newestOfGuests(before.filter((one) => one.guest !== guest));
        const aged = agedAt(own);
        return { entries: services.map(aged), claimedAt: at, guestEntries: guests.map(aged), at };
      },
      close: () => undefined,
    };
  }
}

function isOwn({ guest }: Appended): boolean {
  return guest === undefined;
}

function newestOfGuests(entries: readonly Appended[]): Appended[] {
  return [
    ...new Map(
      entries.filter(({ guest }) => guest !== undefined).map((one) => [one.guest, one]),
    ).values(),
  ];
}

function agedAt(at: Appended): (one: Appended) => LedgerEntry {
  return (one) => ({ text: one.text, ageMs: ageMs(stamped(one), stamped(at)) });
}

function stamped({ at, leaderEpoch }: Appended) {
  return { timestamp: String(at), leaderEpoch, isAppendTime: true };
}

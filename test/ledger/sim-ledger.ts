import { CellarstreamError } from '../../src/errors.ts';
import { ageMs } from '../../src/sinks/kafka-ledger.ts';
import type { AccountLog, LedgerEntry } from '../../src/sinks/kafka-ledger.ts';
import type { SimTime } from '../sim/sim-time.ts';

interface Appended {
  readonly text: string;
  /** By the leader's clock, ms. */
  readonly at: number;
  readonly leaderEpoch: number;
}

/** How long what is sent to Kafka is on its way, or whether it never comes. */
export interface Ways {
  /** Resolves when a step of a process may go on; never where it is dead. */
  readonly step: () => Promise<void>;
  /** Whether Kafka can be reached just now. */
  readonly isCutOff: () => boolean;
}

/** The topic of ledgers, for one account: producers that fence each other, and a leader whose clock is its own. */
export class SimLedger {
  readonly #time: SimTime;
  readonly #entries: Appended[] = [];
  #epoch = 0;
  #leader = { epoch: 0, skewMs: 0 };

  constructor(time: SimTime) {
    this.#time = time;
  }

  /** Another broker leads, with another clock. */
  moveLeader(skewMs: number): void {
    this.#leader = { epoch: this.#leader.epoch + 1, skewMs };
  }

  /** What one process has of it. */
  of({ step, isCutOff }: Ways, now: () => number): AccountLog {
    let epoch = 0;
    const write = (text: string): number => {
      if (isCutOff()) throw new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');
      if (epoch !== this.#epoch)
        throw new CellarstreamError('FENCED', 'another one has the ledger');
      const { epoch: leaderEpoch, skewMs } = this.#leader;
      return this.#entries.push({ text, at: this.#time.now() + skewMs, leaderEpoch });
    };
    return {
      takeOver: async (text) => {
        await step();
        epoch = ++this.#epoch;
        await step();
        const end = write(text);
        await step();
        const at = now();
        await step(); // until it is read
        const claim = this.#entries[end - 1]!;
        const entries = this.#entries.slice(0, end - 1).map((one): LedgerEntry => ({
          text: one.text,
          ageMs: ageMs(stamped(one), stamped(claim)),
        }));
        return { entries, at };
      },
      append: async (text) => {
        await step(); // it is produced
        write(text);
        await step(); // EndTxn is sent
        if (epoch !== this.#epoch)
          throw new CellarstreamError('FENCED', 'another one has the ledger');
        await step(); // and answered
      },
      close: () => Promise.resolve(),
    };
  }
}

function stamped({ at, leaderEpoch }: Appended) {
  return { timestamp: String(at), leaderEpoch, isAppendTime: true };
}

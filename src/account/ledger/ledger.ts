import { defer, EMPTY, filter, ignoreElements, Subject, take } from 'rxjs';
import type { Observable, SchedulerLike, Subscription } from 'rxjs';
import type { Hooks } from '../../observe/hooks.ts';
import { ledgerText, parseLedger, sentIn } from './ledger-record.ts';
import type { Declared, LedgerRecord, SentRecord, TimedCount } from './ledger-record.ts';
import { pace } from './start-pace.ts';
import type { Pace } from './start-pace.ts';
import type { AccountLog, Guests } from '../../sinks/ledger/kafka-ledger.ts';
import type { Message } from '../../sinks/sink.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Gate, TokenBucketOptions } from '../../streams/quota/token-bucket.ts';
import { usedRequests } from './used-requests.ts';
import type { UsedRequests } from './used-requests.ts';

/** What a successor finds. */
export interface Inheritance {
  /** The newest declaration; undefined where there is none. */
  readonly record: LedgerRecord | undefined;
  /** When that was sent at the latest: ms, on this process's clock. */
  readonly sentBefore: number;
  /** What guests have declared who asked while nobody had the account, and what was under another name with its API key. */
  readonly guests: readonly SentRecord[];
  /** Whether it may still let requests begin: whoever sent it was not stopped. */
  readonly isRunning: boolean;
  /** Whether anything was found that is no declaration: somebody may have asked of whom nothing is known. */
  readonly isDoubtful: boolean;
}

/** One quota's part of the ledger. */
export interface LedgerPart {
  readonly gate: Gate;
  readonly onStart: NonNullable<TokenBucketOptions['onStart']>;
  /** Counts requests of others, so that the next declaration tells of them. */
  readonly count: (requests: readonly TimedCount[]) => void;
}

/**
 * The requests of an account, declared before they are sent. Nothing starts while no declaration that was committed lets it:
 * that is the lease of whoever asks the API.
 */
export interface Ledger {
  /**
   * @param capacity Most requests in a minute.
   * @param isRare Each is declared when it is wanted, one by one: logins.
   */
  readonly part: (name: string, capacity: number, isRare: boolean) => LedgerPart;
  /** Takes the ledger over, which is kept in this log; nothing starts before {@link begin}. Again after a failure. */
  readonly claim: (log: AccountLog) => Promise<Inheritance>;
  /** All that was inherited is counted: declares whenever something is to start. */
  readonly begin: (inherited: Inheritance) => void;
  /** Whether what has started may still be sent. */
  readonly isRunning: () => boolean;
  /** For how long, ms; 0 or less is no longer. */
  readonly leftMs: () => number;
  /** Completes when it is for so long at the least: declares anew where that is needed. */
  readonly lasting: (ms: number) => Observable<never>;
  /** What guests have declared while nothing was asked here: to be counted at once, requests go on behind it. */
  readonly guests$: Observable<readonly SentRecord[]>;
  /** Errors when this process may ask no more: `FENCED`. */
  readonly failed$: Observable<never>;
  /** Declares what was really asked, and that nothing more is: the next process need not wait. */
  readonly settle: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface LedgerOptions {
  /** Names this process. */
  readonly instance: string;
  /** The digest of the API key: an account of another name that has it is found by that. */
  readonly key?: string;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, ms: it goes on while the machine sleeps. Default `Date.now`. */
  readonly wallNow?: () => number;
  readonly hooks?: Pick<Hooks, 'onRetry'>;
  /** What is committed with each claim, and with the last declaration. Default nothing. */
  readonly beside?: LedgerMessages | undefined;
  /** Uniform in [0, 1), for the jitter of pauses. Default Math.random. */
  readonly random?: () => number;
}

/** Messages that the ledger's producer writes: who has lost the account can't write them. */
export interface LedgerMessages {
  readonly claim: () => readonly Message[];
  readonly settle: () => readonly Message[];
}

/** How long a declaration lets requests begin, ms. */
export const BLOCK_MS = 10_000;
/** How long before its end the next one is sent, ms. */
export const AHEAD_MS = 1_000;
/** Between two tries, at most, ms. */
const MAX_PAUSE_MS = 5_000;
/** Processes whose requests may still count, at most: each takes some seconds to begin. */
const MAX_WRITERS = 16;

interface Part {
  readonly capacity: number;
  readonly isRare: boolean;
  readonly pace: Pace;
  readonly used: UsedRequests;
  underWay: number;
  /** Starts that are left of the block. */
  left: number;
  /** Starts since the newest declaration was sent. */
  started: number;
  isWanted: boolean;
}

export function openLedger(options: LedgerOptions): Ledger {
  const { instance, key, scheduler, wallNow = () => Date.now(), hooks = {}, beside } = options;
  const { random = Math.random } = options;
  const parts = new Map<string, Part>();
  let log: AccountLog | undefined;
  const opened$ = new Subject<void>();
  const guests$ = new Subject<readonly SentRecord[]>();
  const failed$ = new Subject<never>();
  let writers: readonly string[] = [instance];
  /** When the block ends, by either clock. */
  let block = { end: -Infinity, wallEnd: -Infinity };
  let claims = 0;
  let hasBegun = false;
  let declaring: Subscription | undefined;
  let renewing: Subscription | undefined;

  // By the clock that has gone further: the monotonic one stands still while a machine sleeps, the other one is set back.
  const left = () => Math.min(block.end - scheduler.now(), block.wallEnd - wallNow());
  const isRunning = () => left() > 0;

  const recordOf = (now: number, blockMs: number): LedgerRecord => ({
    instance,
    writers,
    blockMs,
    quotas: Object.fromEntries(
      [...parts].map(([name, part]) => [name, declared(part, now, blockMs)]),
    ),
    ...(key !== undefined && { key }),
  });
  const declared = (part: Part, now: number, blockMs: number): Declared => ({
    used: part.used.ages(now),
    underWay: part.underWay,
    more: blockMs === 0 ? 0 : moreOf(part, blockMs),
  });
  /** No less than what the block before has left: it may be used until this declaration is committed, and counts. */
  const moreOf = (part: Part, blockMs: number): number => {
    const kept = isRunning() ? part.left : 0;
    const wanted = part.isRare ? Number(part.isWanted) : part.pace.most(blockMs);
    return Math.min(part.capacity, Math.max(kept, wanted));
  };
  const declare = async (): Promise<void> => {
    const [now, wall] = [scheduler.now(), wallNow()];
    const blockMs = BLOCK_MS + Math.min(AHEAD_MS, Math.max(0, Math.ceil(left())));
    const record = recordOf(now, blockMs);
    for (const part of parts.values()) {
      part.started = 0;
      part.isWanted = false;
    }
    await log?.append(ledgerText(record));
    // Guests that came while no declaration ran have declared what they ask themselves. Whoever comes from now on sees
    // this declaration.
    const guests = log && !isRunning() ? await log.guests() : undefined;
    if (!hasBegun) return; // it has ended meanwhile
    if (guests) guests$.next(heard(guests));
    block = { end: now + blockMs, wallEnd: wall + blockMs };
    for (const [name, part] of parts) {
      part.left = Math.max(0, (record.quotas[name]?.more ?? 0) - part.started);
    }
    renewing?.unsubscribe();
    renewing = scheduler.schedule(renew, Math.max(0, left() - AHEAD_MS));
  };
  const go = (): void => {
    if (!hasBegun || declaring) return;
    const declared$ = defer(declare).pipe(
      backoff({
        ...{ scheduler, random },
        maxMs: MAX_PAUSE_MS,
        onRetry: (retry) => hooks.onRetry?.({ what: 'kafka', ...retry }),
      }),
    );
    declaring = declared$.subscribe({
      error: (error: unknown) => {
        hasBegun = false;
        failed$.error(error);
      },
      complete: () => {
        declaring = undefined;
        opened$.next();
      },
    });
    if (declaring.closed) declaring = undefined;
  };
  /** Of a block in which nothing was asked nothing follows: what is asked next is declared then. */
  const renew = (): void => {
    if ([...parts.values()].some(({ started }) => started > 0)) go();
  };

  return {
    part: (name, capacity, isRare) => {
      const part: Part = {
        ...{ capacity, isRare, pace: pace(capacity), used: usedRequests() },
        ...{ underWay: 0, left: 0, started: 0, isWanted: false },
      };
      parts.set(name, part);
      return {
        gate: {
          opensAt: (now, rank) => {
            if (part.left === 0 || !isRunning()) return Infinity;
            return isRare ? now : part.pace.opensAt(now, rank);
          },
          want: () => {
            part.isWanted = true;
            go();
          },
          opened$,
        },
        onStart: (at) => {
          part.pace.take(at);
          part.left -= 1;
          part.started += 1;
          part.underWay += 1;
          return (end, isAnswered) => {
            part.underWay -= 1;
            part.used.end(end, isAnswered);
          };
        },
        count: part.used.count,
      };
    },
    claim: async (claimed) => {
      await log?.close();
      log = claimed;
      const text = ledgerText({ instance, claim: true, number: ++claims });
      const taken = await log.takeOver(text, beside?.claim());
      const { entries, claimedAt } = taken;
      const newest = entries
        .map(({ text, ageMs }) => ({ entry: parseLedger(text), ageMs }))
        .findLast(({ entry }) => !entry || !('claim' in entry));
      const { entry, ageMs = 0 } = newest ?? {};
      const record = entry && 'quotas' in entry ? entry : undefined;
      const sentBefore = claimedAt - ageMs;
      const isRunning = record !== undefined && sentBefore + record.blockMs > claimedAt;
      const isDoubtful = newest !== undefined && !record;
      return { record, sentBefore, isRunning, guests: heard(taken), isDoubtful };
    },
    begin: ({ record }) => {
      writers = [...(record?.writers ?? []), instance].slice(-MAX_WRITERS);
      hasBegun = true;
      opened$.next();
    },
    isRunning,
    leftMs: left,
    lasting: (ms) =>
      defer(() => {
        if (left() >= ms) return EMPTY;
        go();
        return opened$.pipe(
          filter(() => left() >= ms),
          take(1),
          ignoreElements(),
        );
      }),
    guests$,
    failed$,
    settle: async () => {
      if (!hasBegun) return;
      hasBegun = false;
      declaring?.unsubscribe();
      renewing?.unsubscribe();
      block = { end: -Infinity, wallEnd: -Infinity };
      await log?.append(ledgerText(recordOf(scheduler.now(), 0)), beside?.settle());
    },
    close: async () => {
      await log?.close();
    },
  };
}

/** What guests have declared; what is none of theirs is passed over. */
function heard({ guests, at }: Guests): SentRecord[] {
  return guests.flatMap((entry) => sentIn(entry, at));
}

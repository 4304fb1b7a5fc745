import type { SchedulerLike } from 'rxjs';
import type { Batch, Share, Shares } from './guest-permits.ts';
import { BLOCK_MS } from '../ledger/ledger.ts';
import { arrivalsIn, ledgerText, parseLedger, sentIn } from '../ledger/ledger-record.ts';
import type { SentRecord } from '../ledger/ledger-record.ts';
import type { GuestLog } from '../../sinks/ledger/guest-log.ts';
import type { TakenOver } from '../../sinks/ledger/kafka-ledger.ts';
import type { LedgerEntry } from '../../sinks/ledger/ledger-entries.ts';
import { WINDOW_MS } from '../quota.ts';

export interface GuestDeclarationsOptions {
  readonly log: Pick<GuestLog, 'declare'>;
  /** Names this process. */
  readonly instance: string;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, ms. Default `Date.now`. */
  readonly wallNow?: () => number;
}

/** Declares requests in the ledger, as a guest. */
export interface GuestDeclarations {
  /**
   * Declares what is wanted, and takes what the declarations before leave of it: none of it, perhaps. Undefined where
   * somebody runs the account: then it is for them to give permits.
   */
  readonly declare: (shares: Shares) => Promise<Batch | undefined>;
  /** Says what was really asked, so that nobody waits for more; nothing where nothing was declared. */
  readonly settle: (shares: Shares) => Promise<void>;
}

/** So many of each quota, by its name. */
type Counts = Readonly<Record<string, number>>;

/**
 * Whoever declares first in the order of the log is seen by all behind them: a guest counts the guests before it and the
 * newest service's, a service that begins to ask looks for guests behind its own declaration. So what a service may ask
 * while its declaration runs is not judged here: it's asked for permits.
 */
export function guestDeclarations(options: GuestDeclarationsOptions): GuestDeclarations {
  const { log, instance, scheduler, wallNow = () => Date.now() } = options;
  let declared = 0;

  const append = (shares: Shares, blockMs: number, more: Counts): Promise<TakenOver> => {
    declared += 1;
    const quotaOf = ([name, { used }]: readonly [string, Share]) =>
      [name, { used, underWay: 0, more: more[name] ?? 0 }] as const;
    const quotas = Object.fromEntries(Object.entries(shares).map(quotaOf));
    return log.declare(
      ledgerText({ instance, writers: [instance], blockMs, quotas, number: declared }),
    );
  };

  return {
    declare: async (shares) => {
      const [at, wallAt] = [scheduler.now(), wallNow()];
      const most = countsOf(shares, (_, share) => Math.min(share.wanted, ownFree(share)));
      const taken = await append(shares, BLOCK_MS, most);
      const others = othersIn(taken);
      const counts =
        others &&
        countsOf(shares, (name, share) =>
          Math.min(most[name]!, freeOf(name, share, others, taken.at)),
        );
      const isShort = Object.entries(most).some(([name, count]) => (counts?.[name] ?? 0) < count);
      // What is declared counts for everybody else, whether it is taken or not.
      if (isShort) await append(shares, BLOCK_MS, counts ?? {});
      return counts && { counts, end: at + BLOCK_MS, wallEnd: wallAt + BLOCK_MS };
    },
    settle: async (shares) => {
      if (declared > 0) await append(shares, 0, {});
    },
  };
}

function countsOf(shares: Shares, count: (name: string, share: Share) => number): Counts {
  return Object.fromEntries(
    Object.entries(shares).map(([name, share]) => [name, count(name, share)]),
  );
}

/** Who has to be counted; undefined where somebody runs the account. */
function othersIn({ entries, guests, at }: TakenOver): SentRecord[] | undefined {
  const sent = (entry: LedgerEntry) => sentIn(entry, at);
  // Of a version that is not known here: who knows what it asks.
  if (entries.some(({ text, ageMs }) => !parseLedger(text) && ageMs < WINDOW_MS)) return undefined;
  const service = entries.flatMap(sent).at(-1);
  // It was sent before it was there: its block is over sooner.
  if (service && service.sentBefore + service.record.blockMs > at) return undefined;
  return [...(service ? [service] : []), ...guests.flatMap(sent)];
}

/** What others leave of a quota, and what this process has asked itself. */
function freeOf(name: string, share: Share, others: readonly SentRecord[], now: number): number {
  const arrived = others
    .flatMap((sent) => arrivalsIn(name, sent))
    .filter(({ at }) => at > now - WINDOW_MS)
    .reduce((sum, { count }) => sum + count, 0);
  return Math.max(0, ownFree(share) - arrived);
}

/** What is free where nobody else asks. */
function ownFree({ capacity, used }: Share): number {
  const own = used
    .filter(([ageMs]) => ageMs < WINDOW_MS)
    .reduce((sum, [, count]) => sum + count, 0);
  return Math.max(0, capacity - own);
}

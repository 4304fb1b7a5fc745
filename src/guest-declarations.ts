import type { SchedulerLike } from 'rxjs';
import type { Batch, Share } from './guest-permits.ts';
import { BLOCK_MS } from './ledger.ts';
import { arrivalsIn, ledgerText, parseLedger } from './ledger-record.ts';
import type { LedgerRecord, SentRecord } from './ledger-record.ts';
import type { GuestLog } from './sinks/guest-log.ts';
import type { LedgerEntry } from './sinks/ledger-entries.ts';
import { WINDOW_MS } from './quotas.ts';

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
  readonly declare: (shares: Readonly<Record<string, Share>>) => Promise<Batch | undefined>;
  /** Says what was really asked, so that nobody waits for more; nothing where nothing was declared. */
  readonly settle: (shares: Readonly<Record<string, Share>>) => Promise<void>;
}

/**
 * Whoever declares first in the order of the log is seen by all behind them: a guest counts the guests before it and the
 * newest service's, a service that begins to ask looks for guests behind its own declaration. So what a service may ask
 * while its declaration runs is not judged here: it's asked for permits.
 */
export function guestDeclarations(options: GuestDeclarationsOptions): GuestDeclarations {
  const { log, instance, scheduler, wallNow = () => Date.now() } = options;
  let hasDeclared = false;

  const recordOf = (shares: Readonly<Record<string, Share>>, blockMs: number): LedgerRecord => ({
    instance,
    writers: [instance],
    blockMs,
    quotas: Object.fromEntries(
      Object.entries(shares).map(([name, { used, wanted }]) => [
        name,
        { used, underWay: 0, more: blockMs === 0 ? 0 : wanted },
      ]),
    ),
  });

  return {
    declare: async (shares) => {
      const [at, wallAt] = [scheduler.now(), wallNow()];
      hasDeclared = true;
      const { entries, guests, at: thereAt } = await log.declare(ledgerText(recordOf(shares, BLOCK_MS))); // prettier-ignore
      const sent = ({ text, ageMs }: LedgerEntry): SentRecord[] => {
        const record = parseLedger(text);
        return record && 'quotas' in record ? [{ record, sentBefore: thereAt - ageMs }] : [];
      };
      // Of a version that is not known here: who knows what it asks.
      if (entries.some(({ text, ageMs }) => !parseLedger(text) && ageMs < WINDOW_MS)) return undefined; // prettier-ignore
      const service = entries.flatMap(sent).at(-1);
      // It was sent before it was there: its block is over sooner.
      if (service && service.sentBefore + service.record.blockMs > thereAt) return undefined;
      const others = [...(service ? [service] : []), ...guests.flatMap(sent)];
      const countOf = ([name, share]: readonly [string, Share]) =>
        [name, Math.min(share.wanted, freeOf(name, share, others, thereAt))] as const;
      const counts = Object.fromEntries(Object.entries(shares).map(countOf));
      return { counts, end: at + BLOCK_MS, wallEnd: wallAt + BLOCK_MS };
    },
    settle: async (shares) => {
      if (hasDeclared) await log.declare(ledgerText(recordOf(shares, 0)));
    },
  };
}

/** What others leave of a quota, and what this process has asked itself. */
function freeOf(
  name: string,
  { capacity, used }: Share,
  others: readonly SentRecord[],
  now: number,
): number {
  const arrived = others
    .flatMap((sent) => arrivalsIn(name, sent))
    .filter(({ at }) => at > now - WINDOW_MS)
    .reduce((sum, { count }) => sum + count, 0);
  const own = used.reduce((sum, [, count]) => sum + count, 0);
  return Math.max(0, capacity - arrived - own);
}

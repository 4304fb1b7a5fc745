import type { SchedulerLike } from 'rxjs';
import type { PermitBatch, QuotaDemand, QuotaDemands } from './guest-permits.ts';
import { LEASE_MS } from '../ledger/ledger.ts';
import {
  latestArrivalsIn,
  ledgerText,
  parseLedger,
  declarationsIn,
} from '../ledger/ledger-record.ts';
import type { DatedDeclaration } from '../ledger/ledger-record.ts';
import type { GuestLog } from '../../sinks/ledger/guest-log.ts';
import type { PriorEntries } from '../../sinks/ledger/kafka-ledger.ts';
import { WINDOW_MS } from '../quota.ts';

export interface GuestDeclarationsOptions {
  readonly log: Pick<GuestLog, 'declare'>;
  /** Id of this process. */
  readonly instance: string;
  readonly scheduler: SchedulerLike;
  /** The machine's clock, in ms. Default `Date.now`. */
  readonly wallNow?: () => number;
}

/** Declares the requests of a guest in the ledger. */
export interface GuestDeclarations {
  /**
   * Declares the requested permits, and returns those that earlier declarations leave free, possibly none. Undefined if a service is
   * running the account: then permits must be requested from the service.
   */
  readonly declare: (shares: QuotaDemands) => Promise<PermitBatch | undefined>;
  /**
   * Writes a final declaration with the requests that were sent, so that unused permits no longer count. Does nothing if nothing was
   * declared.
   */
  readonly declareFinal: (shares: QuotaDemands) => Promise<void>;
}

/** Number of requests for each quota, by the quota's name. */
type Counts = Readonly<Record<string, number>>;

/**
 * Creates the declarations of a guest. The order of the ledger decides: a guest counts the declarations of guests before its own, and the
 * newest one of the service. A service that begins to send requests looks for guests that declared before it. While a service has a lease a
 * guest declares nothing, but requests permits from it.
 */
export function guestDeclarations(options: GuestDeclarationsOptions): GuestDeclarations {
  const { log, instance, scheduler, wallNow = () => Date.now() } = options;
  let declared = 0;

  const append = (shares: QuotaDemands, blockMs: number, more: Counts): Promise<PriorEntries> => {
    declared += 1;
    const quotaOf = ([name, { used }]: readonly [string, QuotaDemand]) =>
      [name, { used, underWay: 0, more: more[name] ?? 0 }] as const;
    const quotas = Object.fromEntries(Object.entries(shares).map(quotaOf));
    return log.declare(
      ledgerText({ instance, writers: [instance], blockMs, quotas, number: declared }),
    );
  };

  return {
    declare: async (shares) => {
      const [at, wallAt] = [scheduler.now(), wallNow()];
      const most = requestCounts(shares, (_, share) =>
        Math.min(share.requested, unusedByGuest(share)),
      );
      const prior = await append(shares, LEASE_MS, most);
      const others = otherDeclarations(prior);
      const counts =
        others &&
        requestCounts(shares, (name, share) =>
          Math.min(most[name]!, freeForGuest(name, share, others, prior.at)),
        );
      const isShort = Object.entries(most).some(([name, count]) => (counts?.[name] ?? 0) < count);
      // Other processes count the declared number even if it was not granted, so a smaller one is declared.
      if (isShort) await append(shares, LEASE_MS, counts ?? {});
      return counts && { counts, expiresAt: at + LEASE_MS, wallExpiresAt: wallAt + LEASE_MS };
    },
    declareFinal: async (shares) => {
      if (declared > 0) await append(shares, 0, {});
    },
  };
}

function requestCounts(
  shares: QuotaDemands,
  count: (name: string, share: QuotaDemand) => number,
): Counts {
  return Object.fromEntries(
    Object.entries(shares).map(([name, share]) => [name, count(name, share)]),
  );
}

/** Returns the declarations of other processes whose requests a guest has to count; undefined if a service may be running the account. */
function otherDeclarations({
  entries,
  guestEntries,
  at,
}: PriorEntries): DatedDeclaration[] | undefined {
  // A recent entry of an unknown version: how many requests its process sends is unknown.
  if (entries.some(({ text, ageMs }) => !parseLedger(text) && ageMs < WINDOW_MS)) return undefined;
  const service = declarationsIn(entries, at).at(-1);
  // `latestSentAt` is not before the actual sending, so the lease may have expired earlier, never later.
  if (service && service.latestSentAt + service.declaration.blockMs > at) return undefined;
  return [...(service ? [service] : []), ...declarationsIn(guestEntries, at)];
}

/** Returns the number of requests of a quota that neither other processes nor this one have used. */
function freeForGuest(
  name: string,
  share: QuotaDemand,
  others: readonly DatedDeclaration[],
  now: number,
): number {
  const arrived = others
    .flatMap((sent) => latestArrivalsIn(name, sent))
    .filter(({ at }) => at > now - WINDOW_MS)
    .reduce((sum, { count }) => sum + count, 0);
  return Math.max(0, unusedByGuest(share) - arrived);
}

/** Returns the number of requests of a quota that this process has not used, whatever other processes have used. */
function unusedByGuest({ capacity, used }: QuotaDemand): number {
  const own = used
    .filter(([ageMs]) => ageMs < WINDOW_MS)
    .reduce((sum, [, count]) => sum + count, 0);
  return Math.max(0, capacity - own);
}

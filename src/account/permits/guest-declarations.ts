import type { PermitBatch, QuotaDemand, QuotaDemands } from './guest-permits.ts';
import { LEASE_MS } from '../ledger/ledger.ts';
import type { LeaseClocks } from '../ledger/ledger.ts';
import {
  latestArrivalsIn,
  ledgerText,
  parseLedger,
  declarationsIn,
  WINDOW_MS,
} from '../ledger/ledger-record.ts';
import type { DatedDeclaration } from '../ledger/ledger-record.ts';
import type { GuestLog } from '../../sinks/ledger/guest-log.ts';
import type { PriorEntries } from '../../sinks/ledger/kafka-ledger.ts';

export interface GuestDeclarationsOptions extends LeaseClocks {
  readonly log: Pick<GuestLog, 'declare'>;
  readonly instance: string;
}

/** Declares the requests of a guest (a process that uses the API key beside the service) in the ledger topic. */
export type GuestDeclarations = ReturnType<typeof guestDeclarations>;

/** Number of permits for each quota, by the quota's name. */
type Counts = Readonly<Record<string, number>>;

/**
 * Creates the {@link GuestDeclarations}, by which a guest declares its requests in the ledger topic before it sends them.
 *
 * The order of the entries in the ledger determines which requests of other processes count against the quota:
 *
 * - A guest counts the requests that other guests declared before it, and those of the service's newest declaration.
 * - A service that begins to send requests counts those that guests declared before it.
 */
export function guestDeclarations(options: GuestDeclarationsOptions) {
  const { log, instance, scheduler, wallNow = () => Date.now() } = options;
  let declared = 0;

  const append = (demands: QuotaDemands, blockMs: number, more: Counts): Promise<PriorEntries> => {
    const quotas = forEachQuota(demands, (name, { used }) => ({
      ...{ used, underWay: 0, more: more[name] ?? 0 },
    }));
    // The number makes the text unique: a guest recognizes its own entries in the ledger by their text.
    declared += 1;
    return log.declare(
      ledgerText({ instance, writers: [instance], blockMs, quotas, number: declared }),
    );
  };

  return {
    /**
     * Declares the requested permits (rights to send one request each) in the ledger. Returns as many of them as the quota has left,
     * possibly none. Returns undefined if a service may be running: only that service can then grant permits.
     */
    declare: async (demands: QuotaDemands): Promise<PermitBatch | undefined> => {
      const [at, wallAt] = [scheduler.now(), wallNow()];
      const most = forEachQuota(demands, (_, demand) =>
        Math.min(demand.requested, unusedByGuest(demand)),
      );
      const prior = await append(demands, LEASE_MS, most);
      const others = otherDeclarations(prior);
      const counts =
        others &&
        forEachQuota(demands, (name, demand) =>
          Math.min(most[name]!, freeForGuest(name, demand, others, prior.at)),
        );
      const isShort = Object.entries(most).some(([name, count]) => (counts?.[name] ?? 0) < count);
      // Other processes count the declared number even if it was not granted, so a smaller one is declared.
      if (isShort) await append(demands, LEASE_MS, counts ?? {});
      return counts && { counts, expiresAt: at + LEASE_MS, wallExpiresAt: wallAt + LEASE_MS };
    },
    /** Writes the guest's final declaration: its unused permits no longer count. Does nothing if the guest has declared nothing before. */
    declareFinal: async (demands: QuotaDemands): Promise<void> => {
      if (declared > 0) await append(demands, 0, {});
    },
  };
}

function forEachQuota<T>(
  demands: QuotaDemands,
  valueOf: (name: string, demand: QuotaDemand) => T,
): Readonly<Record<string, T>> {
  return Object.fromEntries(
    Object.entries(demands).map(([name, demand]) => [name, valueOf(name, demand)]),
  );
}

/**
 * Returns the declarations whose requests a guest (a process beside the service) has to count: the newest one of the service, and those of
 * other guests. Undefined if a service may be sending requests.
 */
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

/** Returns the number of requests that a quota has left after those that this process has counted and those that `others` declare. */
function freeForGuest(
  name: string,
  demand: QuotaDemand,
  others: readonly DatedDeclaration[],
  now: number,
): number {
  const arrived = others
    .flatMap((sent) => latestArrivalsIn(name, sent))
    .filter(({ at }) => at > now - WINDOW_MS)
    .reduce((sum, { count }) => sum + count, 0);
  return Math.max(0, unusedByGuest(demand) - arrived);
}

/** Returns the capacity of a quota less the requests that this process has counted. Declarations of other processes are not subtracted. */
function unusedByGuest({ capacity, used }: QuotaDemand): number {
  const own = used
    .filter(([ageMs]) => ageMs < WINDOW_MS)
    .reduce((sum, [, count]) => sum + count, 0);
  return Math.max(0, capacity - own);
}

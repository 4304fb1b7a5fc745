// Entries of the ledger topic: their format, and the requests that a reader of an entry has to count.

import { z } from 'zod';
import { objectIn } from '../../core/http-text.ts';

/** Name of the quota that limits login requests. */
export const LOGIN_QUOTA = 'login';
/** Name of the quota that all lists share if the API counts by API key. */
export const SHARED_QUOTA = 'all';
/**
 * Time added to the period (a minute or a second) in which requests are counted, in ms, because latencies and clock rates vary. If it is
 * too small, the server may count more requests than the quota. If it is too large, quota is wasted.
 */
const HEADROOM_MS = 200;
/** Window in which requests are counted against a quota, in ms. */
export const WINDOW_MS = 60_000 + HEADROOM_MS;
/** Window in which requests count against a per-second limit, in ms. */
export const SECOND_WINDOW_MS = 1_000 + HEADROOM_MS;
/**
 * Assumed maximum delay, in ms: a request can still arrive at the API this long after this process stopped waiting for its response. If it
 * is too small, the API may count more requests than the quota allows.
 */
export const MAX_REQUEST_DELAY_MS = 1_000;
const LEDGER_VERSION = 1;

const COUNT = z.int().min(0);
const QUOTA = z.object({
  /**
   * Requests of the last minute, as pairs of age and count. The age counts from the latest possible arrival of the requests at the API
   * until the declaration is sent, in ms. It is negative if the requests may arrive after the declaration is sent.
   */
  used: z.array(z.tuple([z.number(), COUNT]).readonly()).readonly(),
  /** Number of requests in flight when the declaration is sent. */
  underWay: COUNT,
  /** Maximum number of requests, not counted in `used` and `underWay`, that may start before the lease expires. */
  more: COUNT,
});
const DECLARATION = z.object({
  /** Id of the process that sends the declaration. */
  instance: z.string(),
  /** Ids of the processes whose requests the declaration includes, newest last; the last one is `instance`. */
  writers: z.array(z.string()).readonly(),
  /** Length of the lease in ms, counted from when the declaration is sent; 0 in a final declaration. */
  blockMs: COUNT,
  /** Declared requests of each quota, by the quota's name. */
  quotas: z.record(z.string(), QUOTA).readonly(),
  /**
   * Serial number of a guest's declaration (a guest is a process beside the service), which makes its text unique. Absent in declarations
   * of the service.
   */
  number: COUNT.optional(),
  /**
   * Digest of the API key with which the declared requests are sent. Absent if the declaration comes from a guest (a process beside the
   * service, such as `check`).
   */
  key: z.string().optional(),
});
const CLAIM = z.object({
  instance: z.string(),
  claim: z.literal(true),
  /** Serial number of the claim, counted by the claiming process, so that no two claim messages in the ledger have the same JSON text. */
  number: COUNT,
});
const ENTRY = z.union([CLAIM, DECLARATION]);

/** Requests that a process declares in the ledger for one quota: that of a list, of logins, or of all lists together. */
export type QuotaDeclaration = Readonly<z.infer<typeof QUOTA>>;

/** Pair of an age in ms and the number of requests with this age. */
export type AgedCount = QuotaDeclaration['used'][number];

/** A declaration in the ledger: the requests that a process has sent, and those that it may still send. */
export type LedgerDeclaration = Readonly<z.infer<typeof DECLARATION>>;

/** A message by which a process claims the ledger. It is written before the process reads the ledger and declares requests. */
export type LedgerClaim = Readonly<z.infer<typeof CLAIM>>;

export function ledgerText(entry: LedgerDeclaration | LedgerClaim): string {
  return JSON.stringify({ version: LEDGER_VERSION, ...entry });
}

/** Parses an entry of the ledger. Returns undefined if the text is not an entry in this version of the format. */
export function parseLedger(text: string): LedgerDeclaration | LedgerClaim | undefined {
  const json = objectIn(text);
  return json?.version === LEDGER_VERSION ? ENTRY.safeParse(json).data : undefined;
}

/** Whether the text of a ledger entry is a declaration of requests that use the API key with the digest `key`. */
export function isOfApiKey(text: string, key: string): boolean {
  if (!text.includes(key)) return false; // a quick check, as most entries are for other keys
  const entry = parseLedger(text);
  return entry !== undefined && 'quotas' in entry && entry.key === key;
}

/** A number of requests that count against a quota until one quota window after the time `at`, in ms on the local clock. */
export interface TimedCount {
  readonly at: number;
  readonly count: number;
}

/** A declaration in the ledger, with the latest time at which its process may have sent it, in ms on the reader's clock. */
export interface DatedDeclaration {
  readonly declaration: LedgerDeclaration;
  readonly latestSentAt: number;
}

/**
 * Returns the declarations among these entries of the ledger. Claims and unreadable entries are skipped.
 *
 * @param entries Text of each entry, and its minimum age in ms at the time `at`.
 * @param at Time in ms on the reader's clock.
 */
export function declarationsIn(
  entries: readonly { readonly text: string; readonly ageMs: number }[],
  at: number,
): DatedDeclaration[] {
  return entries.flatMap(({ text, ageMs }) => {
    const declaration = parseLedger(text);
    return declaration && 'quotas' in declaration
      ? [{ declaration, latestSentAt: at - ageMs }]
      : [];
  });
}

/**
 * Returns the requests in a declaration that count against the quota `name`. Each count has the latest time at which its requests may reach
 * the API, in ms on the reader's clock.
 */
export function latestArrivalsIn(
  name: string,
  { declaration, latestSentAt }: DatedDeclaration,
): TimedCount[] {
  const leaseEnd = latestSentAt + declaration.blockMs;
  return quotaDeclarationsIn(name, declaration)
    .flatMap(({ used, underWay, more }) => [
      ...used.map(([ageMs, count]) => ({ at: latestSentAt - ageMs, count })),
      // Requests in flight and those that may still start: until the lease ends, they may be sent at any time.
      { at: leaseEnd + MAX_REQUEST_DELAY_MS, count: underWay + more },
    ])
    .filter(({ count }) => count > 0);
}

/**
 * Returns the parts of a declaration that count against the quota `name`: the part with that name. If the declaration has no such part:
 *
 * - for `all` (the quota that lists share), the parts of all lists;
 * - for a list, the part `all`.
 */
export function quotaDeclarationsIn(
  name: string,
  { quotas }: LedgerDeclaration,
): readonly QuotaDeclaration[] {
  const { [LOGIN_QUOTA]: login, [SHARED_QUOTA]: shared, ...lists } = quotas;
  if (name === SHARED_QUOTA && !shared) return Object.values(lists);
  const declared = name === LOGIN_QUOTA ? login : (lists[name] ?? shared);
  return declared ? [declared] : [];
}

// Entries of the ledger topic: their format, and the requests that a reader of an entry has to count.

import { isJsonObject, parseJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** Requests that a process declares in the ledger for one quota: that of a list, of logins, or of all lists together. */
export interface QuotaDeclaration {
  /**
   * Requests of the last minute, by their age when the declaration is sent. The age counts from the latest time at which the request can
   * have reached the API, rounded up to a full second.
   */
  readonly used: readonly AgedCount[];
  /** Number of requests in flight when the declaration is sent. */
  readonly underWay: number;
  /** Maximum number of further requests that may start before the lease expires. */
  readonly more: number;
}

/** A number of requests and their age in ms; a negative age is in the future. */
export type AgedCount = readonly [ageMs: number, count: number];

/**
 * A declaration in the ledger: the requests that a process has sent, and those that it may still send. A JSON value in topic
 * `<prefix>.ledger`.
 */
export interface LedgerDeclaration {
  /** Id of the process that sends the declaration. */
  readonly instance: string;
  /** Ids of the processes whose requests the declaration includes, newest last; the last one is `instance`. */
  readonly writers: readonly string[];
  /** Length of the lease from the sending of the declaration on, in ms; 0 in a final declaration. */
  readonly blockMs: number;
  /** Declared requests of each quota, by the quota's name. */
  readonly quotas: Readonly<Record<string, QuotaDeclaration>>;
  /**
   * Serial number of a guest's declaration. It makes the text of each declaration unique, as a guest recognizes its own entries by their
   * text.
   */
  readonly number?: number;
  /** Digest of the API key that the requests use; absent in declarations of guests. */
  readonly key?: string;
}

/** A claim of the ledger by a process, written before it reads the ledger and before it declares requests. */
export interface LedgerClaim {
  readonly instance: string;
  readonly claim: true;
  /** Serial number of the claim in its process. It makes the text of each claim unique. */
  readonly number: number;
}

/**
 * Upper bound of how long after a request was given up it may still reach the API, in ms. Too small: the API may count more requests than
 * the quota.
 */
export const MAX_REQUEST_DELAY_MS = 1_000;
const LEDGER_VERSION = 1;

export function ledgerText(entry: LedgerDeclaration | LedgerClaim): string {
  return JSON.stringify({ version: LEDGER_VERSION, ...entry });
}

/** Parses an entry of the ledger; undefined if the text is not an entry of this version. */
export function parseLedger(text: string): LedgerDeclaration | LedgerClaim | undefined {
  let entry: JsonValue;
  try {
    entry = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(entry) || entry.version !== LEDGER_VERSION) return undefined;
  const { instance, claim, number, writers, blockMs, quotas, key } = entry;
  if (typeof instance !== 'string') return undefined;
  if (claim === true) return isCount(number) ? { instance, claim, number } : undefined;
  if (!isStringArray(writers) || !isCount(blockMs) || !isJsonObject(quotas)) return undefined;
  if (!areQuotaDeclarations(quotas)) return undefined;
  return {
    ...{ instance, writers, blockMs, quotas },
    ...(isCount(number) && { number }),
    ...(typeof key === 'string' && { key }),
  };
}

/** Whether the text of a ledger entry is a declaration of requests that use the API key with the digest `key`. */
export function isOfApiKey(text: string, key: string): boolean {
  if (!text.includes(key)) return false; // a quick check, as most entries are for other keys
  const entry = parseLedger(text);
  return entry !== undefined && 'quotas' in entry && entry.key === key;
}

function areQuotaDeclarations(
  quotas: JsonObject,
): quotas is JsonObject & Record<string, QuotaDeclaration> {
  return Object.values(quotas).every(isQuotaDeclaration);
}

function isQuotaDeclaration(value: JsonValue | undefined): boolean {
  if (value === undefined || !isJsonObject(value)) return false;
  const { used, underWay, more } = value;
  const isAged = (one: JsonValue) =>
    Array.isArray(one) && one.length === 2 && Number.isFinite(one[0]) && isCount(one[1]);
  return Array.isArray(used) && used.every(isAged) && isCount(underWay) && isCount(more);
}

function isStringArray(value: JsonValue | undefined): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

/** A number of requests that count against a quota from the time `at` on, in ms on the local clock. */
export interface TimedCount {
  readonly at: number;
  readonly count: number;
}

/**
 * Returns the declared requests of a quota that a successor has to count, each at the latest time at which it can have reached the API.
 *
 * @param sentBefore Latest time at which the declaration can have been sent, in ms on the successor's clock.
 */
export function latestArrivals(
  { used, underWay, more }: QuotaDeclaration,
  blockMs: number,
  sentBefore: number,
): TimedCount[] {
  const toCome = { at: sentBefore + blockMs + MAX_REQUEST_DELAY_MS, count: underWay + more };
  const made = used.map(([ageMs, count]) => ({ at: sentBefore - ageMs, count }));
  return [...made, toCome].filter(({ count }) => count > 0);
}

/** A declaration of the ledger, and the latest time at which it can have been sent, in ms on the reader's clock. */
export interface DatedDeclaration {
  readonly declaration: LedgerDeclaration;
  readonly latestSentAt: number;
}

/**
 * Parses an entry of the ledger. Returns an array with its declaration, or an empty one if the entry is not a declaration: for use with
 * `flatMap`.
 *
 * @param at Time at which the entry's age was `ageMs`, in ms on the reader's clock.
 */
export function declarationsIn(
  { text, ageMs }: { readonly text: string; readonly ageMs: number },
  at: number,
): DatedDeclaration[] {
  const declaration = parseLedger(text);
  return declaration && 'quotas' in declaration ? [{ declaration, latestSentAt: at - ageMs }] : [];
}

/**
 * Returns the requests in a declaration that the quota `name` has to count, each at the latest time at which it can have reached the API.
 */
export function latestArrivalsIn(
  name: string,
  { declaration, latestSentAt }: DatedDeclaration,
): TimedCount[] {
  return quotaDeclarationsIn(name, declaration).flatMap((declared) =>
    latestArrivals(declared, declaration.blockMs, latestSentAt),
  );
}

/**
 * Returns the parts of a declaration that the quota `name` has to count. A shared quota counts all lists; each list also counts a shared
 * quota.
 */
export function quotaDeclarationsIn(
  name: string,
  { quotas }: LedgerDeclaration,
): readonly QuotaDeclaration[] {
  const isCounted = (other: string) =>
    name === LOGIN_QUOTA
      ? other === LOGIN_QUOTA
      : other !== LOGIN_QUOTA &&
        (name === SHARED_QUOTA || other === SHARED_QUOTA || other === name);
  return Object.entries(quotas).flatMap(([other, declared]) =>
    isCounted(other) ? [declared] : [],
  );
}

/** Name of the quota of logins. */
export const LOGIN_QUOTA = 'login';
/** Name of the quota that all lists share if the API counts by API key. */
export const SHARED_QUOTA = 'all';

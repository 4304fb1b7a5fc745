import { isJsonObject, parseJson } from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';

/** What is declared of one quota: a list's, the logins', or that of all lists together. */
export interface Declared {
  /** Requests of the last minute, in ms of their age as this is sent: the latest possible arrival, to the end of its second. */
  readonly used: readonly AgedCount[];
  /** Requests that are under way as this is sent. */
  readonly underWay: number;
  /** At most so many more begin until the block's end. */
  readonly more: number;
}

/** So many, so long ago in ms; below 0 is to come. */
export type AgedCount = readonly [ageMs: number, count: number];

/** A declaration: what has been asked, and what may be asked from now on. The value of `<prefix>.ledger`, as JSON. */
export interface LedgerRecord {
  /** The process that sends it. */
  readonly instance: string;
  /** Those whose requests are in it, the newest last: this one too. */
  readonly writers: readonly string[];
  /** The block ends so long after this was sent, ms; 0 where nothing more is asked. */
  readonly blockMs: number;
  /** By the quota's name. */
  readonly quotas: Readonly<Record<string, Declared>>;
  /** Counts those of a guest, as it finds its own by their text: no two are the same. */
  readonly number?: number;
  /** Digest of the API key that they are made with; absent in declarations of guests. */
  readonly key?: string;
}

/** Says that a process takes the ledger over; it has read nothing yet, and asks for nothing. */
export interface LedgerClaim {
  readonly instance: string;
  readonly claim: true;
  /** Counts those of a process: no two entries are the same. */
  readonly number: number;
}

/** Of a request's way to the API: it arrives so long after it was given up, at most, ms. */
export const LATE_MS = 1_000;
const VERSION = 1;

export function ledgerText(entry: LedgerRecord | LedgerClaim): string {
  return JSON.stringify({ version: VERSION, ...entry });
}

/** Undefined where the text is none of this version. */
export function parseLedger(text: string): LedgerRecord | LedgerClaim | undefined {
  let entry: JsonValue;
  try {
    entry = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(entry) || entry.version !== VERSION) return undefined;
  const { instance, claim, number, writers, blockMs, quotas, key } = entry;
  if (typeof instance !== 'string') return undefined;
  if (claim === true) return isCount(number) ? { instance, claim, number } : undefined;
  if (!isTexts(writers) || !isCount(blockMs) || !isJsonObject(quotas)) return undefined;
  if (!areDeclared(quotas)) return undefined;
  return {
    ...{ instance, writers, blockMs, quotas },
    ...(isCount(number) && { number }),
    ...(typeof key === 'string' && { key }),
  };
}

/** Whether it is a declaration of requests that are made with this key. */
export function isOfKey(text: string, key: string): boolean {
  if (!text.includes(key)) return false; // there are many accounts, and most have other keys
  const entry = parseLedger(text);
  return entry !== undefined && 'quotas' in entry && entry.key === key;
}

function areDeclared(quotas: JsonObject): quotas is JsonObject & Record<string, Declared> {
  return Object.values(quotas).every(isDeclared);
}

function isDeclared(value: JsonValue | undefined): boolean {
  if (value === undefined || !isJsonObject(value)) return false;
  const { used, underWay, more } = value;
  const isAged = (one: JsonValue) =>
    Array.isArray(one) && one.length === 2 && Number.isFinite(one[0]) && isCount(one[1]);
  return Array.isArray(used) && used.every(isAged) && isCount(underWay) && isCount(more);
}

function isTexts(value: JsonValue | undefined): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0;
}

/** Requests that count from a time on, ms. */
export interface TimedCount {
  readonly at: number;
  readonly count: number;
}

/**
 * What a successor has to count of a quota: by the latest time at which each request can have arrived.
 *
 * @param sentBefore The latest time at which the record can have been sent, on the successor's clock, ms.
 */
export function arrivals(
  { used, underWay, more }: Declared,
  blockMs: number,
  sentBefore: number,
): TimedCount[] {
  const toCome = { at: sentBefore + blockMs + LATE_MS, count: underWay + more };
  const made = used.map(([ageMs, count]) => ({ at: sentBefore - ageMs, count }));
  return [...made, toCome].filter(({ count }) => count > 0);
}

/** A record, and the latest time at which it can have been sent: ms, on the clock of whoever has read it. */
export interface SentRecord {
  readonly record: LedgerRecord;
  readonly sentBefore: number;
}

/**
 * The declaration that an entry is, if it is one: a list, for those of many.
 *
 * @param at When the entry was that old: ms, on the reader's clock.
 */
export function sentIn(
  { text, ageMs }: { readonly text: string; readonly ageMs: number },
  at: number,
): SentRecord[] {
  const record = parseLedger(text);
  return record && 'quotas' in record ? [{ record, sentBefore: at - ageMs }] : [];
}

/** What of it a quota has to count. */
export function arrivalsIn(name: string, { record, sentBefore }: SentRecord): TimedCount[] {
  return countedIn(name, record).flatMap((declared) =>
    arrivals(declared, record.blockMs, sentBefore),
  );
}

/** The quotas of a record that a quota has to answer for: a shared one for all, and each for what was shared. */
export function countedIn(name: string, { quotas }: LedgerRecord): readonly Declared[] {
  const isCounted = (other: string) =>
    name === LOGIN
      ? other === LOGIN
      : other !== LOGIN && (name === ALL || other === ALL || other === name);
  return Object.entries(quotas).flatMap(([other, declared]) =>
    isCounted(other) ? [declared] : [],
  );
}

/** The quota of logins. */
export const LOGIN = 'login';
/** That of all lists together, where they share one. */
export const ALL = 'all';

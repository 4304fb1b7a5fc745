import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Issued } from '../check-certificates.ts';
import { checkTruth } from '../check-chains.ts';
import type { Chains } from '../published.ts';
import type { StyleList } from './style-list.ts';
import type { Style } from './style.ts';

/**
 * Whether a list lets a deletion be proven, so that it has to be published in the end. A list with `total` alone is proven by two
 * readings that count it exactly, and one with `agreed` alone by two readings in which no page repeats a record of another and the
 * last one has records. A list without a total order promises neither.
 */
export function owesDeletions(style: Style): boolean {
  const { total, one, hasTombstones, agreed, isUnstable, isTrailing } = style;
  const isReadable = ((agreed && !isTrailing) || total !== undefined) && !isUnstable;
  return one !== undefined || hasTombstones || isReadable;
}

/** Whether a list has any evidence for a deletion. One without must never publish any. */
export function mayDelete({ total, one, hasTombstones, agreed, paging }: Style): boolean {
  const isWhole = paging === 'none';
  const isAnchored = paging === 'offset' || paging === 'page' || paging === 'after';
  const hasEvidence = total !== undefined || one !== undefined || hasTombstones || agreed;
  return hasEvidence || isWhole || isAnchored;
}

/** Whether the published records are those of the list, as far as the list's proofs allow. */
export function isWellRead(
  images: ReadonlyMap<string, JsonObject>,
  list: StyleList,
  style: Style,
): boolean {
  const truth = list.truth();
  const isCurrent = [...truth].every(([key, { version }]) => images.get(key)?.version === version);
  return isCurrent && (!owesDeletions(style) || images.size === truth.size);
}

/** Rejects a topic that lacks a record or a deletion that the list's proofs allow, and any deletion of a list that has no evidence. */
export function checkEnd(chains: Chains, list: StyleList, style: Style): string[] {
  const missing = checkTruth(chains, list).filter(
    (violation) => owesDeletions(style) || !violation.endsWith('is gone, and not deleted'),
  );
  if (mayDelete(style)) return missing;
  const deleted = [...chains].filter(([, chain]) =>
    chain.some((event) => event !== 'tombstone' && event.op === 'd'),
  );
  return [...missing, ...deleted.map(([key]) => `${key}: is deleted in a list without proofs`)];
}

/**
 * Level that a certificate claims of its reading: `read` claims nothing, any other that each record that stood still was read. `proof` of
 * today's certificates is `exact` only for a reading that its counts prove.
 */
export function levelOf({ proof, ...more }: Issued): string {
  if ('level' in more && typeof more.level === 'string') return more.level;
  return proof === 'exact' ? 'counted' : 'read';
}

/** A page of the whole list, as the server made it. */
export interface ServedPage {
  /** Broker's time, in epoch ms. */
  readonly at: number;
  readonly keys: readonly string[];
}

/**
 * Rejects a certificate whose level is too high: a record that stood still during the reading has to be on a page that was served during
 * the reading, or the reading has missed it. `agreed` says no more than that two readings had the same keys. `counted` says no more than that
 * as many keys were read as the total says: without an overlap, a deletion and an insertion between two pages hide a record that moved.
 *
 * @param served Pages in the order in which they were served.
 * @param skewMs Most by which the times of certificates are earlier than the broker's: `Date` headers have whole seconds.
 */
export function checkLevels(
  certificates: readonly Issued[],
  { paging }: Pick<Style, 'paging'>,
  list: StyleList,
  served: readonly ServedPage[],
  skewMs: number,
): string[] {
  const overlaps = ['offset', 'page', 'after'].includes(paging);
  const violations: string[] = [];
  for (const certificate of certificates) {
    const { number, began_at: beganAt, at: to } = certificate;
    const level = levelOf(certificate);
    if (level === 'read' || level === 'agreed' || (level === 'counted' && !overlaps)) continue;
    const from = beganAt - skewMs;
    const shown = new Set(
      served.filter(({ at }) => at >= from && at <= to).flatMap(({ keys }) => keys),
    );
    for (const [key, sights] of list.history) {
      const before = sights.findLast((sight) => sight.at < from);
      const stoodStill = !sights.some((sight) => sight.at >= from && sight.at <= to);
      if (before?.json && stoodStill && !shown.has(key))
        violations.push(
          `certificate ${number} is ${level}, and its reading from ${timeOf(from)} to ${timeOf(to)} has missed ${key}`,
        );
    }
  }
  return violations;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString().slice(11, -1);
}

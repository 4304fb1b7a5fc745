import type { JsonObject } from '../../../src/schemas/json/json.ts';
import type { Issued } from '../check-certificates.ts';
import { checkTruth } from '../check-chains.ts';
import type { Chains } from '../published.ts';
import type { StyleList } from './style-list.ts';
import type { Style } from './style.ts';

/**
 * Whether a list lets a deletion be proven, so that it has to be published in the end. A list with `total` alone is proven by two
 * readings that count it exactly, which a list without a total order does not promise.
 */
export function owesDeletions({ total, one, hasTombstones, agreed, isUnstable }: Style): boolean {
  return one !== undefined || hasTombstones || agreed || (total !== undefined && !isUnstable);
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

/**
 * Rejects a certificate whose level is too high: each record that stood still while the certificate's list was read has to be in the
 * topic, as it was, and no record may be missing that the certificate calls read.
 *
 * @param skewMs Difference between the times of certificates and of the broker; a second by which `Date` headers are rounded.
 */
export function checkLevels(
  certificates: readonly Issued[],
  chains: Chains,
  list: StyleList,
  skewMs = 1_000,
): string[] {
  const violations: string[] = [];
  for (const certificate of certificates) {
    const { number, began_at: beganAt, at } = certificate;
    const level = levelOf(certificate);
    if (level === 'read' || level === 'nothing') continue;
    for (const [key, sights] of list.history) {
      const before = sights.findLast((sight) => sight.at <= beganAt - skewMs);
      const stoodStill = !sights.some((sight) => sight.at > beganAt - skewMs && sight.at <= at);
      if (!before?.json || !stoodStill) continue;
      const event = chains.get(key)?.findLast((each) => each !== 'tombstone' && each.at <= at);
      const published = event && event !== 'tombstone' ? event.record?.version : undefined;
      if (published !== before.json.version)
        violations.push(
          `certificate ${number} is ${level}, and lacks ${key} in version ${String(before.json.version)}`,
        );
    }
  }
  return violations;
}

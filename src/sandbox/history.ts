import type { Template } from './template.ts';
import { mix } from './random.ts';

/** How far back history goes: three years of 365 days. */
const HISTORY_MS = 3 * 365 * 86_400_000;

/** What is known of every record of a list without writing it: one column each, by id. */
export interface Columns {
  /** Epoch ms. */
  created: Float64Array;
  /** Epoch ms. */
  updated: Float64Array;
  /** Which outline the record is made of. */
  outline: Uint16Array;
}

/**
 * Spreads `count` records evenly over history, in order of their ids. A record is made of an
 * outline that its age allows: the oldest have mostly run their course, the newest only begun.
 *
 * @param inTurn whether outlines take turns, so that few records are all different.
 */
export function makeHistory(
  count: number,
  seed: number,
  endsAt: number,
  resolutionMs: number,
  outlines: readonly Template[],
  inTurn: boolean,
): Columns {
  const columns = {
    created: new Float64Array(count),
    updated: new Float64Array(count),
    outline: new Uint16Array(count),
  };
  const lives = outlines.map(({ lifeMs }) => lifeMs);
  const floor = (at: number) => Math.floor(at / resolutionMs) * resolutionMs;
  const begin = endsAt - HISTORY_MS;
  for (let id = 0; id < count; id++) {
    const within = mix(seed, id * 2) / 2 ** 32;
    const created = begin + Math.floor(((id + within) / count) * HISTORY_MS);
    const fitting = countFitting(lives, endsAt - 1 - created);
    const lot = Math.cbrt(mix(seed, id * 2 + 1) / 2 ** 32);
    const chosen = inTurn ? id % fitting : Math.floor(lot * fitting);
    columns.created[id] = floor(created);
    columns.updated[id] = floor(created + lives[chosen]!);
    columns.outline[id] = chosen;
  }
  return columns;
}

/** The ids in order of `updated`, then of id. */
export function sortByUpdated(updated: Float64Array): Uint32Array {
  // Time and id packed into one number of 64 bits, which the engine sorts natively: in a tenth of
  // the time that a comparator takes. 24 bits hold the id, 40 the ms since the oldest (34 years).
  const packed = new BigUint64Array(updated.length);
  const words = new Uint32Array(packed.buffer);
  let oldest = Infinity;
  for (const at of updated) oldest = Math.min(oldest, at);
  for (let id = 0; id < updated.length; id++) {
    const age = updated[id]! - oldest;
    words[id * 2] = ((age % 256) * 2 ** 24 + id) >>> 0;
    words[id * 2 + 1] = Math.floor(age / 256);
  }
  packed.sort();
  const ids = new Uint32Array(updated.length);
  for (let k = 0; k < ids.length; k++) ids[k] = words[k * 2]! & 0xff_ff_ff;
  return ids;
}

function countFitting(lives: readonly number[], ageMs: number): number {
  let low = 0;
  let high = lives.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lives[middle]! <= ageMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

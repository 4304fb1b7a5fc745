import { createHash } from 'node:crypto';
import { canonicalJson } from '../schemas/json.ts';
import type { JsonValue } from '../schemas/json.ts';

/** A record that was read, by its key and a digest of its content. */
export type Anchor = readonly [key: string, digest: string];

/** Where a scan goes on, and how it knows the place again. Plain JSON: a cursor carries it. */
export interface Position {
  readonly offset: number;
  /** Some records of each of the newest pages, in the order of the list; the newest page last. */
  readonly anchors: readonly (readonly Anchor[])[];
  /** Steps back in a row that have led here. */
  readonly stepsBack: number;
}

export const BEGINNING: Position = { offset: 0, anchors: [], stepsBack: 0 };

/** What a page is to a scan. */
export interface Joint {
  /** The page joins what was read: everything up to its end has been read, or has changed since. */
  readonly anchored: boolean;
  /** Records that have not changed stand in another order than before: no total order, no promise. */
  readonly swapped: boolean;
  /** Where to go on; after a page that does not join, further back. */
  readonly next: Position;
  /** Too many steps back in a row: `next` is the beginning. */
  readonly adrift: boolean;
}

export interface JoinOptions {
  /** Records a page that are asked for. */
  readonly pageSize: number;
  /** How many records before the end of a page the next one begins. */
  readonly overlap: number;
  readonly keyOf: (record: JsonValue) => string | undefined;
}

const PAGES_KEPT = 4;
const SPREAD_PER_PAGE = 10;
const MOST_STEPS_BACK = 8;

/**
 * Holds a page against what a scan has read before, and says where to go on.
 *
 * A list that changes while it is paged moves under the reader: after deletions a plain next offset
 * skips as many records. So each page begins `overlap` records early and counts only when it shows,
 * unchanged, a record that the scan has read before: in a list with a total order everything before
 * such an anchor was read when the anchor was, and everything behind it in the page is next to it. A
 * record that moved across the anchor did so because it changed, and the next window reads it.
 * A page without an anchor says that more was removed than the overlap: the scan steps back.
 *
 * The same reading of a list that was never sorted, or is sorted anew for each request, shows in
 * anchors that have changed places.
 */
export function join(at: Position, data: readonly JsonValue[], options: JoinOptions): Joint {
  const { pageSize, overlap, keyOf } = options;
  const places = new Map<string, number>();
  data.forEach((record, place) => {
    const key = keyOf(record);
    if (key !== undefined) places.set(key, place);
  });

  let anchored = at.offset === 0;
  let swapped = false;
  for (const page of at.anchors) {
    let last = -1;
    for (const [key, digest] of page) {
      const place = places.get(key);
      if (place === undefined || digestOf(data[place]!) !== digest) continue;
      anchored = true;
      if (place < last) swapped = true;
      last = place;
    }
  }
  if (!anchored) {
    const adrift = at.stepsBack >= MOST_STEPS_BACK;
    const offset = adrift ? 0 : Math.max(0, at.offset - Math.max(1, pageSize - overlap));
    const next = { offset, anchors: at.anchors, stepsBack: adrift ? 0 : at.stepsBack + 1 };
    return { anchored, swapped, next, adrift };
  }
  // A server may give smaller pages than it was asked for: go by what came, and always forward.
  const step = Math.max(1, data.length - Math.min(overlap, Math.floor(data.length / 2)));
  const anchors = [...at.anchors, choose(data, overlap, keyOf)].slice(-PAGES_KEPT);
  return {
    anchored,
    swapped,
    next: { offset: at.offset + step, anchors, stepsBack: 0 },
    adrift: false,
  };
}

/** The last records of a page, for the next one; a few spread over it, for steps back. */
function choose(
  data: readonly JsonValue[],
  overlap: number,
  keyOf: JoinOptions['keyOf'],
): readonly Anchor[] {
  const stride = Math.max(1, Math.floor(data.length / SPREAD_PER_PAGE));
  const anchors: Anchor[] = [];
  data.forEach((record, place) => {
    if (place % stride !== 0 && place < data.length - Math.min(overlap, 2 * SPREAD_PER_PAGE))
      return;
    const key = keyOf(record);
    if (key !== undefined) anchors.push([key, digestOf(record)]);
  });
  return anchors;
}

/** Enough of a hash to tell the versions of one record apart. */
function digestOf(record: JsonValue): string {
  return createHash('sha1').update(canonicalJson(record)).digest('base64url').slice(0, 12);
}

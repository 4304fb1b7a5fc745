import { boundedMap } from '../../core/bounded-map.ts';

/**
 * Digests of records' contents, by those of the bytes that they were sent in. A content is parsed, put in order and written, which
 * takes twenty times as long as a digest of its bytes; and most anchors of a scan are those of the scan before.
 */
export interface ContentDigests {
  /** Undefined where the bytes were not met, or long ago. */
  readonly get: (digestOfBytes: string) => string | undefined;
  /** These bytes were looked into. */
  readonly set: (digestOfBytes: string, digestOfContent: string) => void;
}

/** Some 100 bytes each: those of the anchors of some hundred pages. */
const MAX_KEPT = 2_000;

/** For all scans of one list. */
export function contentDigests(): ContentDigests {
  return boundedMap(MAX_KEPT);
}

import { isRetryable } from '../../core/errors.ts';
import type { ImageUpdate, KeptText } from '../../state/store.ts';
import type { Difference, ReadRecords } from '../../streams/diff/diff.ts';
import type { MatchingOptions } from '../../streams/decode/decoder.ts';
import type { PageRecord } from '../../streams/records/page-record.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';

/** Digests of the bytes that a task's records were sent in: what comes as it came before is known by them. */
export interface PayloadDigests extends Pick<MatchingOptions, 'known' | 'asOf'> {
  /** Whether a record that was known as it arrived still is the one that its image was made of. */
  readonly isStillKnown: (record: PageRecord) => boolean;
  /** Of a page's records that are as their images say, once those are stored. */
  readonly toKeep: (
    difference: Difference<ReadRecords>,
    images: readonly ImageUpdate[],
  ) => ReadonlyMap<string, KeptText>;
  /** To be told when a page's images are stored. */
  readonly stored: (images: readonly ImageUpdate[]) => void;
}

export function payloadDigests(checkpoint: Pick<Checkpoint, 'text'>): PayloadDigests {
  let generation = 0; // of the images: what was known in an earlier one has to be looked at again
  return {
    known: (key) => {
      try {
        return checkpoint.text(key);
      } catch (error) {
        // A store that fails is not the API's affair: it fails again once the page's turn has come.
        if (!isRetryable(error)) throw error;
        return undefined;
      }
    },
    asOf: () => generation,
    isStillKnown: ({ key, image, digest }) =>
      image?.kind === 'published' &&
      (image.asOf === generation || checkpoint.text(key!)?.digest === digest?.digest),
    toKeep: ({ read, same, refreshed, changes }, images) => {
      const kept = new Map<string, KeptText>();
      const written = new Set(images.map(({ key }) => key));
      // An image may be published again beside a record that is older than it is.
      const changed = new Set(changes.map(({ key }) => key).filter((key) => written.has(key)));
      for (const each of [...same, ...read.records.filter(({ key }) => changed.has(key))]) {
        if (each.image?.kind === 'published' && !written.has(each.key)) continue; // it is kept already
        if (refreshed.has(each.key) && !written.has(each.key)) continue; // its image is of other bytes
        if (each.digest) kept.set(each.key, each.digest);
      }
      return kept;
    },
    stored: (images) => void (generation += Number(images.length > 0)),
  };
}

import { isRetryable } from '../../core/errors.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import type { ImageUpdate, KeptText } from '../../state/store.ts';
import type { Difference, ReadRecords } from '../../streams/diff/diff.ts';
import type { FreshOptions } from '../../streams/records/fresh-record.ts';
import { digestMatcher } from '../../streams/records/known-record.ts';
import type { KnownRecord, DigestMatcher } from '../../streams/records/known-record.ts';
import { SentRecord } from '../../streams/records/sent-record.ts';

/** The texts that a task's records were sent as: what comes as it came before is known by them. */
export interface PayloadDigests {
  readonly digestMatcher: DigestMatcher;
  /** Whether a record that was known as it arrived still is the one that its image was made of. */
  readonly isStillKnown: (record: KnownRecord) => boolean;
  /** Of a page's records that are as their images say, once those are stored. */
  readonly toKeep: (
    difference: Difference<ReadRecords>,
    images: readonly ImageUpdate[],
  ) => ReadonlyMap<string, KeptText>;
  /** To be told when a page's images are stored. */
  readonly stored: (images: readonly ImageUpdate[]) => void;
}

export function payloadDigests(
  checkpoint: Pick<Checkpoint, 'text'>,
  fresh: FreshOptions,
): PayloadDigests {
  let generation = 0; // of the images: what was known in an earlier one has to be looked at again
  /** A store that fails is not the API's affair: it fails again once the page's turn has come. */
  const known = (key: string): KeptText | undefined => {
    try {
      return checkpoint.text(key);
    } catch (error) {
      if (!isRetryable(error)) throw error;
      return undefined;
    }
  };
  const matcher = digestMatcher({
    ...fresh,
    known,
    asOf: () => generation,
  });
  return {
    digestMatcher: matcher,
    isStillKnown: ({ key, asOf, text }) =>
      asOf === generation || checkpoint.text(key)?.digest === text.digest,
    toKeep: ({ read, same, refreshed, changes }, images) => {
      const kept = new Map<string, KeptText>();
      const written = new Set(images.map(({ key }) => key));
      // An image may be published again beside a record that is older than it is.
      const changed = new Set(changes.map(({ key }) => key).filter((key) => written.has(key)));
      for (const each of [...same, ...read.records.filter(({ key }) => changed.has(key))]) {
        if (each.isSame && !written.has(each.key)) continue; // it is kept already
        if (refreshed.has(each.key) && !written.has(each.key)) continue; // its image is of other bytes
        const text = each instanceof SentRecord ? each.text : matcher.textOf(each.record);
        if (text) kept.set(each.key, text);
      }
      return kept;
    },
    stored: (images) => void (generation += Number(images.length > 0)),
  };
}

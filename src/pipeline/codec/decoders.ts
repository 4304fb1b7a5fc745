import { isRetryable } from '../../core/errors.ts';
import { encodingDecoder, digestDecoder, parsingDecoder } from '../../streams/decode/decoder.ts';
import type { Decoder } from '../../streams/decode/decoder.ts';
import { keyOfFields } from '../../streams/records/key-of.ts';
import type { Stamps } from '../../streams/records/stamps.ts';
import type { StoreReads } from '../checkpoint/checkpoint.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

/**
 * Returns the decoders that turn the bytes of a list's pages into records.
 *
 * - `snapshot`, for pages of the initial snapshot: converts the bytes of each record directly into its Avro image. A record that can't be
 *   converted, or that has no key, is parsed as JSON instead.
 * - `afterSnapshot`, for the pages of all other reads: compares the digests of records, and of groups of adjacent records (runs), with
 *   those in the image store. Records with an equal digest equal their stored images and are not decoded; these are most records. The
 *   others are passed to `snapshot`.
 */
export function decoders(
  keyFields: readonly string[],
  stamps: Stamps,
  { encodeNow: encode }: SchemaEvolution,
  store: StoreReads,
): { readonly snapshot: Decoder; readonly afterSnapshot: Decoder } {
  const keyOf = keyOfFields(keyFields);
  const snapshot = encodingDecoder(
    { keyFields, keyOf, stamps, encode },
    parsingDecoder(keyOf, stamps),
  );
  // An error of the store must not count as a failed request of the API. If it persists, it occurs again when the page is compared.
  const payloadDigestOf = ignoringTransient((key) => store.payloadDigest(key));
  const knownRun = ignoringTransient((key) => store.runFrom(key));
  const runDigest = (bytes: Buffer) => store.digestOf(bytes);
  const afterSnapshot = digestDecoder(
    { keyFields, keyOf, stamps, payloadDigestOf, knownRun, runDigest },
    snapshot,
  );
  return { snapshot, afterSnapshot };
}

/** Wraps `look`: if it throws a transient error, the returned function returns undefined instead. Other errors are passed on. */
function ignoringTransient<T>(
  look: (key: string) => T | undefined,
): (key: string) => T | undefined {
  return (key) => {
    try {
      return look(key);
    } catch (error) {
      if (!isRetryable(error)) throw error;
      return undefined;
    }
  };
}

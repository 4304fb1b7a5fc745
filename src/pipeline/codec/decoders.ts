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
 * - `snapshot`, for pages of the initial snapshot: converts the bytes of each record directly into its Avro image. A record for which this
 *   fails is parsed as JSON.
 * - `afterSnapshot`, for the pages of all other reads: recognizes unchanged records, and groups of them (runs), by the digests in the image
 *   store. The others are passed to `snapshot`.
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

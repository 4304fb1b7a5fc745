import { isRetryable } from '../../core/errors.ts';
import { encodingDecoder, digestDecoder, parsingDecoder } from '../../streams/decode/decoder.ts';
import type { Decoder } from '../../streams/decode/decoder.ts';
import type { KeyOf } from '../../streams/records/key-of.ts';
import type { StoreReads } from '../checkpoint/checkpoint.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

/** Decoders that turn the bytes of a list's pages into records. */
export interface Decoders {
  /** Decoder of pages of the initial snapshot: encodes each record, without comparing it with stored digests. */
  readonly snapshot: Decoder;
  /** Decoder of pages of all other reads: looks up stored digests first, as most records equal their stored images. */
  readonly afterSnapshot: Decoder;
}

export interface DecodersOptions {
  readonly keyFields: readonly string[];
  readonly keyOf: KeyOf;
  readonly evolution: Pick<SchemaEvolution, 'encodeNow'>;
  readonly store: StoreReads;
}

/**
 * Creates the decoders of a list's pages. For each record they try in turn: recognition by its digest, encoding directly from its bytes,
 * parsing as JSON.
 */
export function decoders({ keyFields, keyOf, evolution, store }: DecodersOptions): Decoders {
  const { encodeNow: encode } = evolution;
  const snapshot = encodingDecoder({ keyFields, keyOf, encode }, parsingDecoder(keyOf));
  // An error of the store must not count as a failed request of the API. If it persists, it occurs again when the page is compared.
  const payloadDigestOf = ignoringTransient((key) => store.payloadDigest(key));
  const knownRun = ignoringTransient((key) => store.runFrom(key));
  const runDigest = (bytes: Buffer) => store.digestOf(bytes);
  const afterSnapshot = digestDecoder(
    { keyFields, keyOf, payloadDigestOf, knownRun, runDigest },
    snapshot,
  );
  return { snapshot, afterSnapshot };
}

/** Wraps `look` to return undefined instead of throwing a transient error. */
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

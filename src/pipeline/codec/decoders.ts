import { isRetryable } from '../../core/errors.ts';
import { encoding, matchingDigests, parsing } from '../../streams/decode/decoder.ts';
import type { Decoder } from '../../streams/decode/decoder.ts';
import type { KeyOf } from '../../streams/records/key-of.ts';
import type { Checkpoint } from '../checkpoint/checkpoint.ts';
import type { SchemaEvolution } from './schema-evolution.ts';

/** How records are made of the pages of a list. */
export interface Decoders {
  /** Of the initial snapshot: nothing of it is known. */
  readonly snapshot: Decoder;
  /** Of all that is read later: most records are as their images say. */
  readonly later: Decoder;
}

export interface DecodersOptions {
  readonly keyFields: readonly string[];
  readonly keyOf: KeyOf;
  readonly evolution: Pick<SchemaEvolution, 'encodeNow'>;
  readonly checkpoint: Pick<Checkpoint, 'text' | 'runFrom' | 'digestOf'>;
}

/** A record is known again by its digest, or encoded from its bytes, or parsed: the first of them that it can be. */
export function decoders({ keyFields, keyOf, evolution, checkpoint }: DecodersOptions): Decoders {
  const encode = evolution.encodeNow;
  const snapshot = encoding({ keyFields, keyOf, encode }, parsing(keyOf));
  // A store that fails is not the API's affair: it fails again once the page's turn has come.
  const known = ifItCan(checkpoint.text);
  const knownRun = ifItCan(checkpoint.runFrom);
  const { digestOf: runDigest } = checkpoint;
  const later = matchingDigests({ keyFields, keyOf, known, knownRun, runDigest }, snapshot);
  return { snapshot, later };
}

/** Undefined where it fails with what may pass. */
function ifItCan<T>(look: (key: string) => T | undefined): (key: string) => T | undefined {
  return (key) => {
    try {
      return look(key);
    } catch (error) {
      if (!isRetryable(error)) throw error;
      return undefined;
    }
  };
}

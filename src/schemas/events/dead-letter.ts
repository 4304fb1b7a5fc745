import { createFlatCodec } from '../avro/flat-codec.ts';
import { loadSchema } from '../avro/load-schema.ts';

/** What the API sent and no topic can hold. */
export interface DeadLetter {
  readonly resource: string;
  /** A code that stays the same from release to release. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  /** JSON text as the API sent it; of a numbered part, its share of that text. */
  readonly raw: string;
  /** Offset of the page it came on, or null. */
  readonly offset: number | null;
  /** In ms since 1970. */
  readonly observed_at: number;
  /** Of the whole text in UTF-8, in hex; null unless it comes in parts, as the rest of these. */
  readonly sha256: string | null;
  /** Bytes of the whole text in UTF-8. */
  readonly length: number | null;
  /** From 1. */
  readonly part: number | null;
  readonly parts: number | null;
}

/** Dead letters to Avro and back. */
export const deadLetterCodec = createFlatCodec<DeadLetter>(
  loadSchema(new URL('./dead-letter.avsc', import.meta.url)),
);

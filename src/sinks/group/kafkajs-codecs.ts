import kafkajs from 'kafkajs';
import { CODECS, decompress } from '../fetch/codecs/decompress.ts';

/** A codec as kafkajs takes it. */
interface Codec {
  compress(encoder: unknown): Promise<Buffer>;
  decompress(bytes: Buffer): Promise<Buffer>;
}

/**
 * Lets kafkajs' consumers read every codec of Kafka. kafkajs has one registry of codecs for the whole process, in which all but
 * gzip throw KafkaJSNotImplemented: only such places are filled, so that a codec which the program has set stays, and one that it
 * sets later replaces ours. Ours only read.
 */
export function fillKafkajsCodecs(): void {
  const registry: Record<number, (() => unknown) | undefined> = kafkajs.CompressionCodecs;
  for (const { type, name } of CODECS) {
    if (isMissing(registry[type])) registry[type] = () => readingCodec(type, name);
  }
}

function isMissing(codec: (() => unknown) | undefined): boolean {
  try {
    return codec?.() === undefined;
  } catch (error) {
    if (error instanceof kafkajs.KafkaJSNotImplemented) return true;
    return false; // the program's own, which says why itself
  }
}

function readingCodec(type: number, name: string): Codec {
  return {
    compress: () =>
      Promise.reject(
        new Error(`cellarstream only reads ${name}: set a codec in kafkajs' CompressionCodecs`),
      ),
    decompress: (bytes) => decompress(type, bytes),
  };
}

import { createHash } from 'node:crypto';
import { boundedMap } from '../../core/bounded-map.ts';
import type { RecordSchema } from '../avro/avro-schema.ts';
import { envelopeCodec } from './envelope.ts';
import type { EnvelopeCodec } from './envelope.ts';

/** Schemas whose codecs are remembered, at least the newest half: of six resources, some versions each. */
const MAX_REMEMBERED = 200;

/**
 * {@link envelopeCodec}, but of equal schemas the same codec for all: accounts of a fleet have the same lists. A codec ends
 * each call with nothing under way, so many may share it.
 */
export function sharedCodecs(): (schema: RecordSchema) => EnvelopeCodec {
  const codecs = boundedMap<string, EnvelopeCodec>(MAX_REMEMBERED);
  return (schema) => {
    const name = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
    const known = codecs.get(name);
    if (known) return known;
    const codec = envelopeCodec(schema);
    codecs.set(name, codec);
    return codec;
  };
}

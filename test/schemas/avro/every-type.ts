import type { AvroType, RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';

export function nullable(name: string, type: AvroType, json?: string) {
  return { name, type: ['null', type] as const, default: null, ...(json ? { json } : {}) };
}

export function imageSchema(types: Record<string, AvroType | ['json', 'string']>): RecordSchema {
  const fields = Object.entries(types).map(([name, type]) =>
    Array.isArray(type)
      ? { ...nullable(name, 'string'), contentMediaType: 'application/json' }
      : nullable(name, type),
  );
  return {
    type: 'record',
    name: 'Value',
    namespace: 'cellarstream.test',
    fields: [
      ...fields,
      { name: 'nulls', type: { type: 'array', items: 'string' }, default: [] },
      { name: 'unmapped', type: { type: 'map', values: 'string' }, default: {} },
    ],
  };
}

/** One field of every kind, under names that JSON allows and Avro doesn't. */
export const everyKind: RecordSchema = imageSchema({
  flag: 'boolean',
  small: 'int',
  count: 'long',
  ratio: 'double',
  label: 'string',
  price: { type: 'bytes', logicalType: 'decimal', precision: 18, scale: 4 },
  at: { type: 'long', logicalType: 'timestamp-millis' },
  day: { type: 'int', logicalType: 'date' },
  any: ['json', 'string'],
  times: { type: 'array', items: { type: 'long', logicalType: 'timestamp-millis' } },
  grid: { type: 'array', items: { type: 'array', items: 'double' } },
  part: { type: 'record', name: 'Part', fields: [nullable('label', 'string', '~a/b')] },
  parts: {
    type: 'array',
    items: {
      type: 'record',
      name: 'Parts',
      fields: [nullable('proto', 'string', '__proto__'), nullable('nulls', 'long')],
    },
  },
});

import { isUnion } from '../../src/schemas/avro/avro-schema.ts';
import type { AvroType, RecordSchema } from '../../src/schemas/avro/avro-schema.ts';

/** The fields of a record, without those of records within. */
export function fieldTable({ fields }: RecordSchema): string {
  const rows = fields.map(({ name, type, doc = '' }) => {
    return `| \`${name}\` | ${inWords(type)} | ${doc} |`;
  });
  return ['| field | type | description |', '| --- | --- | --- |', ...rows].join('\n');
}

/** A record and those within it, each once. */
export function recordTables(schema: RecordSchema, path = ''): string {
  const within = schema.fields.flatMap(({ name, type }) => {
    const inner = recordIn(type);
    return inner ? [recordTables(inner, `${path}${name}${isList(type) ? '[]' : ''}.`)] : [];
  });
  const title = path ? [`\`${path.slice(0, -1)}\`, ${lowerFirst(schema.doc ?? schema.name)}`] : [];
  return [...title, fieldTable(schema), ...within].join('\n\n');
}

/** The record that a type is, or holds. */
export function recordIn(type: AvroType): RecordSchema | undefined {
  if (typeof type === 'string') return undefined;
  if ('fields' in type) return type;
  if ('items' in type) return recordIn(type.items);
  return isUnion(type) ? type.map(recordIn).find((inner) => inner !== undefined) : undefined;
}

function isList(type: AvroType): boolean {
  return isUnion(type) ? type.some(isList) : typeof type === 'object' && 'items' in type;
}

/** A type as people say it. */
function inWords(type: AvroType): string {
  if (isUnion(type)) return `${inWords(type[1]!)}, or null`;
  if (typeof type === 'object' && 'fields' in type) return 'record';
  if (typeof type === 'object' && 'items' in type) return `list of ${plural(inWords(type.items))}`;
  if (typeof type === 'object' && 'values' in type)
    return `${plural(inWords(type.values))} by text`;
  if (typeof type === 'object' && 'logicalType' in type) {
    const { logicalType, precision, scale } = type;
    if (logicalType === 'timestamp-millis') return 'time, ms since 1970';
    if (logicalType === 'date') return 'date, days since 1970';
    return `decimal (${precision}, ${scale})`;
  }
  const words: Readonly<Record<string, string>> = {
    long: 'integer',
    int: 'integer',
    string: 'text',
  };
  return typeof type === 'string' ? (words[type] ?? type) : '';
}

function plural(word: string): string {
  return `${word}s`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

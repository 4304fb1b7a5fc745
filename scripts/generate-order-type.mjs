// `node scripts/generate-order-type.mjs`: writes src/description/wine/order-type.ts, the schema of orders in TypeScript.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { argv } from 'node:process';
import { format, resolveConfig } from 'prettier';

/**
 * @typedef {import('../src/schemas/avro/avro-schema.ts').RecordSchema} RecordSchema
 * @typedef {import('../src/schemas/avro/avro-schema.ts').FieldSchema} FieldSchema
 * @typedef {import('../src/schemas/avro/avro-schema.ts').AvroType} AvroType
 */

const SCHEMA = 'src/description/wine/order.avsc';
const TYPE = 'src/description/wine/order-type.ts';

const HEAD = `// Generated from order.avsc by scripts/generate-order-type.mjs (\`npm run docs\`): change the schema instead.
`;

const READING = `
 *
 * A field is null if the API sent null (\`nulls\` lists these fields), left the field out, or sent a value that the field can't
 * hold exactly (\`unmapped\` has such values). An array element that is null, or that can't be held, is an empty element.\n`;

/** Primitive and logical types, as they are read. */
const WORDS = new Map([
  ['boolean', 'boolean'],
  ['int', 'number'],
  ['long', 'number'],
  ['double', 'number'],
  ['string', 'string'],
  ['decimal', 'number'],
  ['timestamp-millis', 'number'],
  ['date', 'string'],
]);

/**
 * The interfaces of a schema of record images and of the records in it, formatted as the file is.
 *
 * @param {RecordSchema} schema
 * @param {string} name of the interface of the images; records within keep their own.
 * @throws {TypeError} for a type that images don't have.
 */
export async function imageType(schema, name) {
  /** @type {string[]} */
  const interfaces = [];
  declare({ ...schema, name, doc: `\n * ${schema.doc ?? ''}${READING}` }, interfaces);
  const config = await resolveConfig(pathOf(TYPE));
  return format(`${HEAD}\n${interfaces.join('\n')}`, { ...config, filepath: TYPE });
}

/**
 * @param {RecordSchema} record
 * @param {string[]} interfaces gets the record's, and those of the records in it after it.
 */
function declare({ name, doc, fields }, interfaces) {
  const place = interfaces.push('') - 1;
  const members = fields.map((field) => {
    const type = typeScript(field.type, interfaces);
    return `/** ${fieldDoc(field)} */\nreadonly ${field.name}: ${type};\n`;
  });
  interfaces[place] = `/** ${doc ?? ''} */\nexport interface ${name} {\n${members.join('')}}\n`;
}

/**
 * @param {AvroType} type
 * @param {string[]} interfaces
 * @returns {string}
 */
function typeScript(type, interfaces) {
  if (isUnion(type)) {
    const [first, second, ...others] = type;
    if (first !== 'null' || second === undefined || others.length > 0) throw unknown(type);
    return `${typeScript(second, interfaces)} | null`;
  }
  if (typeof type === 'object' && 'fields' in type) {
    declare(type, interfaces);
    return type.name;
  }
  if (typeof type === 'object' && 'items' in type) {
    return `readonly ${typeScript(type.items, interfaces)}[]`;
  }
  if (typeof type === 'object' && 'values' in type) {
    return `Readonly<Record<string, ${typeScript(type.values, interfaces)}>>`;
  }
  const word = WORDS.get(wordOf(type));
  if (word === undefined) throw unknown(type);
  return word;
}

/** @param {FieldSchema} field */
function fieldDoc({ doc = '', type }) {
  const held = isUnion(type) ? type[1] : type;
  const unit = held === undefined ? '' : unitOf(held);
  return unit ? `${doc} ${unit}` : doc;
}

/** @param {AvroType} type */
function unitOf(type) {
  switch (wordOf(type)) {
    case 'timestamp-millis':
      return 'In ms since 1970.';
    case 'date':
      return 'As `YYYY-MM-DD`.';
    case 'decimal':
      return `Up to ${typeof type === 'object' && 'scale' in type ? type.scale : 0} decimal places.`;
    default:
      return '';
  }
}

/** @param {AvroType} type */
function wordOf(type) {
  if (typeof type === 'string') return type;
  return 'logicalType' in type ? type.logicalType : '';
}

/**
 * @param {AvroType} type
 * @returns {type is readonly AvroType[]}
 */
function isUnion(type) {
  return Array.isArray(type);
}

/**
 * @param {AvroType} type
 * @returns {TypeError}
 */
function unknown(type) {
  return new TypeError(`no type of an image: ${JSON.stringify(type)}`);
}

function readSchema() {
  /** @type {unknown} */
  const schema = JSON.parse(readFileSync(pathOf(SCHEMA), 'utf8'));
  return /** @type {RecordSchema} */ (schema);
}

/** @param {string} path from the package's root folder. */
function pathOf(path) {
  return fileURLToPath(new URL(`../${path}`, import.meta.url));
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(pathOf(TYPE), await imageType(readSchema(), 'Order'));
}

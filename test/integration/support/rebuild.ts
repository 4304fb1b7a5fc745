import { parse } from 'lossless-json';
import { Instant, SentNumber } from './json-model.ts';
import type { Rebuilt, RebuiltMembers } from './json-model.ts';

/** A type in Avro's schema language, as far as images use it. */
export type AvroSchema = string | readonly AvroSchema[] | AvroSchemaObject;
export interface AvroSchemaObject {
  readonly type: string;
  readonly logicalType?: string;
  readonly scale?: number;
  /** Of a time: whether its text is what counts. */
  readonly exact?: boolean;
  readonly items?: AvroSchema;
  readonly fields?: readonly AvroField[];
}
export interface AvroField {
  readonly name: string;
  readonly type: AvroSchema;
  /** The name in JSON, where it is another one. */
  readonly json?: string;
  readonly contentMediaType?: string;
}

/**
 * The API's record from an image alone, as a stranger would rebuild it by the contract: its fields
 * that are not null; then null wherever `nulls` points; then, in place of what they say, the JSON
 * texts of `unmapped`.
 *
 * @param image As avsc decodes it without logical types, longs as bigints.
 */
export function rebuild(image: Record<string, unknown>, schema: AvroSchemaObject): Rebuilt {
  const fields = schema.fields!.slice(0, -2);
  const root: RebuiltMembers = new Map([['record', membersOf(image, fields)]]);
  for (const pointer of image.nulls as string[]) put(root, pointer, null);
  const texts = image.unmapped as Record<string, string>;
  for (const pointer of Object.keys(texts).sort()) put(root, pointer, ofText(texts[pointer]!));
  return root.get('record')!;
}

function membersOf(record: Record<string, unknown>, fields: readonly AvroField[]): RebuiltMembers {
  const members: RebuiltMembers = new Map();
  for (const { name, type, json, contentMediaType } of fields) {
    const value = record[name];
    if (value === undefined) throw new Error(`no field ${name} in what was decoded`);
    if (value === null) continue;
    const isJson = contentMediaType === 'application/json';
    members.set(json ?? name, isJson ? ofText(value as string) : ofType(value, branchOf(type)));
  }
  return members;
}

/** Every field is null or of one type. */
function branchOf(type: AvroSchema): AvroSchema {
  if (!Array.isArray(type) || type.length !== 2 || type[0] !== 'null') {
    throw new Error(`not nullable: ${JSON.stringify(type)}`);
  }
  return type[1] as AvroSchema;
}

function ofType(value: unknown, type: AvroSchema): Rebuilt {
  const { type: name, ...more } = typeof type === 'object' ? (type as AvroSchemaObject) : { type };
  if (more.fields) return membersOf(value as Record<string, unknown>, more.fields);
  if (more.items !== undefined)
    return (value as unknown[]).map((item) => ofType(item, more.items!));
  switch (`${name} ${more.logicalType ?? ''}`.trimEnd()) {
    case 'boolean':
    case 'string':
      return value as boolean | string;
    case 'int':
    case 'long':
      return new SentNumber(String(value));
    case 'double':
      return new SentNumber(Object.is(value, -0) ? '-0' : String(value));
    case 'bytes decimal':
      return new SentNumber(`${unscaled(value as Buffer)}e-${more.scale ?? 0}`);
    case 'int date':
      return new Date(Number(value) * 86_400_000).toISOString().slice(0, 10);
    case 'long timestamp-millis': {
      const ms = Number(value);
      return more.exact ? new Date(ms).toISOString() : new Instant(ms);
    }
    default:
      throw new Error(`no type of the contract: ${JSON.stringify(type)}`);
  }
}

function unscaled(bytes: Buffer): bigint {
  return BigInt.asIntN(8 * bytes.length, BigInt(`0x${bytes.toString('hex') || '0'}`));
}

/** RFC 6901: puts a value where the pointer points, in an object or a list that is there. */
function put(root: RebuiltMembers, pointer: string, value: Rebuilt): void {
  const steps = ['record', ...pointer.split('/').slice(1).map(unescaped)];
  let parent: Rebuilt | undefined = root;
  for (const step of steps.slice(0, -1)) {
    parent = parent instanceof Map ? parent.get(step) : (parent as Rebuilt[])[Number(step)];
  }
  const last = steps.at(-1)!;
  if (parent instanceof Map) parent.set(last, value);
  else if (Array.isArray(parent) && Number(last) < parent.length) parent[Number(last)] = value;
  else throw new Error(`${pointer} points to nothing`);
}

const unescaped = (step: string) => step.replaceAll('~1', '/').replaceAll('~0', '~');

function ofText(text: string): Rebuilt {
  return modelOf(parse(text, undefined, (number) => new SentNumber(number)));
}

function modelOf(value: unknown): Rebuilt {
  if (Array.isArray(value)) return value.map(modelOf);
  if (typeof value !== 'object' || value === null || value instanceof SentNumber) {
    return value as Rebuilt;
  }
  return new Map(Object.entries(value).map(([name, member]) => [name, modelOf(member)]));
}

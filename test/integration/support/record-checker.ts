import type { RecordKey, Resource, SandboxAccount } from '../../../src/sandbox/index.ts';
import { canonical } from './checker.ts';
import type { Findings } from './checker.ts';
import { imageJson } from './image-json.ts';
import type { Read } from './topic-reader.ts';

type Image = Readonly<Record<string, unknown>>;

/** An event as the contract describes it, read by a stranger. */
export type Envelope = {
  readonly before: Image | null;
  readonly after: Image | null;
  readonly op: string;
  readonly changed: readonly string[];
  readonly source: { readonly sequence: number };
};

export function envelopeOf({ value }: Read): Envelope {
  return value as Envelope;
}

/** The records of a list by the keys of its topic; these are the sandbox's own unless told. */
export function truthOf(
  sandbox: Pick<SandboxAccount, 'truth'>,
  resource: Resource,
  keyOf: (key: RecordKey, record: unknown) => string = String,
): Map<string, unknown> {
  const { truth } = sandbox;
  const records = [...truth.keys(resource)].map((key) => [key, truth.get(resource, key)] as const);
  return new Map(records.map(([key, record]) => [keyOf(key, record), record]));
}

/**
 * Holds the events of any resource against the promises, key by key: `sequence` rises, `before` is
 * the previous `after`, nothing is there twice, and the last image is the truth. Images count as the
 * JSON they stand for: a schema that has grown between two of them makes no difference.
 */
export function checkRecords(
  events: readonly Read[],
  truth: ReadonlyMap<string, unknown>,
): Findings {
  const violations: string[] = [];
  const ops: Record<string, number> = {};
  const last = new Map<string, { sequence: number; json: string }>();
  for (const event of events) {
    const { key, value } = event;
    if (key === null || value === null) continue;
    const { before, after, op, source } = envelopeOf(event);
    ops[op] = (ops[op] ?? 0) + 1;
    const known = last.get(key);
    const [was, is] = [before, after].map((image) => canonical(image && recordOf(image)));
    if (known && source.sequence <= known.sequence)
      violations.push(`${key}: sequence ${source.sequence} after ${known.sequence}`);
    if (was !== (known?.json ?? 'null'))
      violations.push(`${key}: before is not the previous after\n${was}\n${known?.json}`);
    if (was === is) violations.push(`${key}: an event without a change`);
    last.set(key, { sequence: source.sequence, json: is! });
  }
  for (const [key, record] of truth) {
    const json = last.get(key)?.json;
    const wanted = canonical(record);
    if (json === undefined) violations.push(`${key}: never published`);
    else if (json !== wanted)
      violations.push(`${key}: the last image is not the truth\n${json}\n${wanted}`);
  }
  for (const [key, { json }] of last) {
    if (json !== 'null' && !truth.has(key)) violations.push(`${key}: is not there`);
  }
  return { violations, ops, keys: last.size };
}

/** The API's JSON, as a stranger rebuilds it: fields, then `nulls`, then `unmapped`. */
export function recordOf(image: Image): unknown {
  const record = imageJson({ ...image, unmapped: {} });
  for (const pointer of image.nulls as string[]) setAt(record, pointer, null);
  const odd = Object.entries(image.unmapped as Record<string, string>);
  for (const [pointer, text] of odd.sort(([a], [b]) => (a < b ? -1 : 1))) {
    setAt(record, pointer, JSON.parse(text));
  }
  return record;
}

function setAt(record: unknown, pointer: string, value: unknown): void {
  const names = pointer
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'));
  const name = names.pop()!;
  let holder = record as Record<string, unknown>;
  for (const step of names) holder = holder[step] as Record<string, unknown>;
  holder[name] = value;
}

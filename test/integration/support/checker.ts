import type { RecordKey, Resource, SandboxAccount } from '../../../src/sandbox/index.ts';
import { imageJson } from './image-json.ts';
import type { Read } from './topic-reader.ts';

type Image = Readonly<Record<string, unknown>>;

export interface Findings {
  /** Everything that breaks a promise, in words; empty is what we want. */
  readonly violations: string[];
  readonly ops: Readonly<Record<string, number>>;
  readonly keys: number;
}

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
 * Holds the events of a list against the promises, key by key: `sequence` rises, `before` is
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

/** {@link checkRecords} of the orders. */
export function checkOrders(
  events: readonly Read[],
  sandbox: Pick<SandboxAccount, 'truth'>,
): Findings {
  return checkRecords(events, truthOf(sandbox, 'orders'));
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

/** A task counts its events: no two have one number, of whatever keys they are. */
export function repeatedSequences(events: readonly Read[]): string[] {
  const seen = new Set<number>();
  return events.flatMap(({ key, value }) => {
    if (value === null) return [];
    const { sequence } = (value as Envelope).source;
    const isRepeated = seen.has(sequence);
    seen.add(sequence);
    return isRepeated ? [`${key}: sequence ${sequence} is there twice`] : [];
  });
}

/** JSON with sorted keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

/** The nine status fields: by subject, where it is in an order, what tells it apart, its fields. */
const SUBJECTS = [
  { subject: 'order', fields: ['payment_status', 'fulfillment_status'] },
  { subject: 'order_edit', array: 'order_edit', id: 'created_at', fields: ['status'] },
  {
    subject: 'fulfillment',
    array: 'fulfillment_info',
    id: 'fulfillment_id',
    fields: ['status', 'shipment_status'],
  },
  {
    subject: 'club_package',
    object: 'club_package_info',
    fields: [
      'package_status',
      'customer_package_status',
      'wine_club_order_status',
      'compliance_status',
    ],
  },
] as const;

/** Every status in an image, by a text that names it. */
function statusesOf(image: Image | null): Map<string, string> {
  const statuses = new Map<string, string>();
  const add = (name: string, record: unknown, fields: readonly string[]) => {
    if (typeof record !== 'object' || record === null) return;
    for (const field of fields) {
      const status = (record as Image)[field];
      if (typeof status === 'string') statuses.set(`${name} ${field}`, status);
    }
  };
  for (const kind of SUBJECTS) {
    if ('array' in kind) {
      const times = new Map<unknown, number>();
      for (const element of (image?.[kind.array] ?? []) as Image[]) {
        const id = element[kind.id];
        const nth = (times.get(id) ?? 0) + 1;
        times.set(id, nth);
        add(`${kind.subject} ${String(id)}${nth > 1 ? `#${nth}` : ''}`, element, kind.fields);
      }
    } else {
      add(`${kind.subject} null`, 'object' in kind ? image?.[kind.object] : image, kind.fields);
    }
  }
  return statuses;
}

/** A status change, as far as it is checked. */
export interface StatusChange {
  readonly key: string | null;
  readonly event_id: unknown;
  readonly subject: unknown;
  readonly subject_id: unknown;
  readonly field: unknown;
  readonly from: unknown;
  readonly to: unknown;
}

/** An event of an order, as far as its statuses go. */
export interface StatusStep {
  readonly key: string;
  readonly op: string;
  readonly before: Image | null;
  readonly after: Image | null;
}

/**
 * Holds status changes against what the images say: of every event that is no initial snapshot and no
 * deletion, each status that differs between `before` and `after` is there once, in order.
 */
export function wrongStatusChanges(
  changes: readonly StatusChange[],
  steps: readonly StatusStep[],
): string[] {
  const expected = new Map<string, string[]>();
  const found = new Map<string, string[]>();
  const add = (to: Map<string, string[]>, id: string, step: string) => {
    const chain = to.get(id);
    if (chain) chain.push(step);
    else to.set(id, [step]);
  };
  for (const { key, before, after, op } of steps) {
    if (op === 'r' || op === 'd') continue;
    const [was, is] = [statusesOf(before), statusesOf(after)];
    for (const name of new Set([...was.keys(), ...is.keys()])) {
      const [from, to] = [was.get(name) ?? null, is.get(name) ?? null];
      if (from !== to) add(expected, `${key} ${name}`, `${from} -> ${to}`);
    }
  }
  const ids = new Set<unknown>();
  const violations: string[] = [];
  for (const { key, event_id, subject, subject_id, field, from, to } of changes) {
    if (ids.has(event_id)) violations.push(`${key}: event ${String(event_id)} is there twice`);
    ids.add(event_id);
    const id = [key, subject, subject_id, field].map(String).join(' ');
    add(found, id, `${String(from)} -> ${String(to)}`);
  }
  for (const id of new Set([...expected.keys(), ...found.keys()])) {
    const [want, got] = [expected.get(id) ?? [], found.get(id) ?? []];
    if (want.join() !== got.join())
      violations.push(`${id}: ${got.join()} instead of ${want.join()}`);
  }
  return violations;
}

/** {@link wrongStatusChanges} of topics. */
export function checkStatusChanges(
  statusEvents: readonly Read[],
  events: readonly Read[],
): { readonly violations: string[]; readonly count: number } {
  const changes = statusEvents.map(({ key, value }) => ({ key, ...(value as StatusFields) }));
  const violations = changes
    .filter(({ key, order_number }) => String(order_number) !== key)
    .map(({ key, order_number }) => `${key}: order_number ${String(order_number)}`);
  const steps = events.flatMap((event) => {
    const { key, value } = event;
    return key === null || value === null ? [] : [{ key, ...envelopeOf(event) }];
  });
  violations.push(...wrongStatusChanges(changes, steps), ...wrongJoins(statusEvents, events));
  return { violations, count: statusEvents.length };
}

/** Status changes that a join by timestamps with a table of the orders would find beside an order with another status. */
function wrongJoins(statusEvents: readonly Read[], events: readonly Read[]): string[] {
  const byKey = new Map<string | null, Read[]>();
  for (const event of events) byKey.set(event.key, [...(byKey.get(event.key) ?? []), event]);
  return statusEvents.flatMap(({ key, value, timestamp }) => {
    const { subject, subject_id, field, to } = value as StatusFields;
    const order = byKey.get(key)?.findLast((event) => event.timestamp <= timestamp);
    const image = order && order.value !== null ? envelopeOf(order).after : null;
    const name = `${String(subject)} ${String(subject_id)} ${String(field)}`;
    const found = statusesOf(image).get(name) ?? null;
    return found === to
      ? []
      : [`${key}: ${name} becomes ${String(to)}, and its order has ${found} at that time`];
  });
}

type StatusFields = Omit<StatusChange, 'key'> & { readonly order_number: unknown };

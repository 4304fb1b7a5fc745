import type { SandboxAccount } from '../../../src/sandbox/index.ts';
import { imageJson } from './image-json.ts';
import type { Read } from './topic-reader.ts';

type Image = Record<string, unknown>;
type Envelope = {
  readonly before: Image | null;
  readonly after: Image | null;
  readonly op: string;
  readonly source: { readonly sequence: number };
};

export interface Findings {
  /** Everything that breaks a promise, in words; empty is what we want. */
  readonly violations: string[];
  readonly ops: Readonly<Record<string, number>>;
  readonly keys: number;
}

/**
 * Holds the events of the orders' topic against the promises, key by key: `sequence` rises, `before`
 * is the previous `after`, nothing is there twice, and the last image is what the sandbox says.
 */
export function checkOrders(
  events: readonly Read[],
  sandbox: Pick<SandboxAccount, 'truth'>,
): Findings {
  const violations: string[] = [];
  const ops: Record<string, number> = {};
  const last = new Map<string, { sequence: number; after: string }>();

  for (const { key, value } of events) {
    if (key === null || value === null) continue;
    const { before, after, op, source } = value as Envelope;
    ops[op] = (ops[op] ?? 0) + 1;
    const known = last.get(key);
    const [was, is] = [JSON.stringify(before), JSON.stringify(after)];
    if (known && source.sequence <= known.sequence) {
      violations.push(`${key}: sequence ${source.sequence} after ${known.sequence}`);
    }
    if (was !== (known?.after ?? 'null'))
      violations.push(`${key}: before is not the previous after`);
    if (was === is) violations.push(`${key}: an event without a change`);
    last.set(key, { sequence: source.sequence, after: is });
  }
  for (const key of sandbox.truth.keys('orders')) {
    const image = last.get(String(key));
    if (!image) {
      violations.push(`${key}: never published`);
      continue;
    }
    if (image.after === 'null') continue; // said below
    const got = canonical(imageJson(JSON.parse(image.after) as Image));
    const truth = canonical(sandbox.truth.get('orders', key));
    if (got !== truth) violations.push(`${key}: the last image is not the truth\n${got}\n${truth}`);
  }
  for (const [key, { after }] of last) {
    const isThere = sandbox.truth.get('orders', Number(key)) !== undefined;
    if (after !== 'null' && !isThere) violations.push(`${key}: was deleted, which no event says`);
    if (after === 'null' && isThere) violations.push(`${key}: is there, and its last event is d`);
  }
  return { violations, ops, keys: last.size };
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

/**
 * Holds the status changes against what the images say: of every event that is no initial snapshot and no
 * deletion, each status that differs between `before` and `after` is there once, in order.
 */
export function checkStatusChanges(
  statusEvents: readonly Read[],
  events: readonly Read[],
): { readonly violations: string[]; readonly count: number } {
  const expected = new Map<string, string[]>();
  for (const { key, value } of events) {
    if (key === null || value === null) continue;
    const { before, after, op } = value as Envelope;
    if (op === 'r' || op === 'd') continue;
    const [was, is] = [statusesOf(before), statusesOf(after)];
    for (const name of new Set([...was.keys(), ...is.keys()])) {
      if (was.get(name) === is.get(name)) continue;
      const id = `${key} ${name}`;
      const chain = expected.get(id) ?? [];
      expected.set(id, [...chain, `${was.get(name) ?? null} -> ${is.get(name) ?? null}`]);
    }
  }
  const found = new Map<string, string[]>();
  const ids = new Set<unknown>();
  const violations: string[] = [];
  for (const { key, value } of statusEvents) {
    const { event_id, order_number, subject, subject_id, field, from, to } = value!;
    if (ids.has(event_id)) violations.push(`${key}: event ${String(event_id)} is there twice`);
    ids.add(event_id);
    if (String(order_number) !== key)
      violations.push(`${key}: order_number ${String(order_number)}`);
    const id = `${key} ${String(subject)} ${String(subject_id)} ${String(field)}`;
    found.set(id, [...(found.get(id) ?? []), `${String(from)} -> ${String(to)}`]);
  }
  for (const id of new Set([...expected.keys(), ...found.keys()])) {
    const [want, got] = [expected.get(id) ?? [], found.get(id) ?? []];
    if (want.join() !== got.join())
      violations.push(`${id}: ${got.join()} instead of ${want.join()}`);
  }
  return { violations, count: statusEvents.length };
}

import { createHash } from 'node:crypto';
import type { ListDescription, StatusTable } from '../../src/description/description.ts';
import { envelopeOf } from '../integration/support/checker.ts';
import type { Read } from '../integration/support/topic-reader.ts';

/** A certificate as a reader sees it who has nothing of the service. */
interface Certificate {
  readonly number: number;
  readonly total_records: number | null;
  readonly read: number;
  readonly rejected: number;
  readonly proof: string;
  readonly level?: string;
  readonly partitions: Readonly<
    Record<string, { readonly position: number; readonly records: number; readonly digest: string }>
  >;
}

/** Certificates of a list that do not say what is in its topic, or say more of a scan than its list allows. */
export function wrongCertificates(
  messages: readonly Read[],
  events: readonly Read[],
  list: ListDescription,
): string[] {
  const certificates = messages
    .filter(({ key, value }) => value !== null && key?.endsWith(`/${list.name}`))
    .map(({ value }) => value as unknown as Certificate);
  return certificates.flatMap((certificate, place) => {
    const { number, total_records, read, rejected, proof, level, partitions } = certificate;
    const name = `certificate ${number} of ${list.name}`;
    const wrong: string[] = [];
    if (number !== place + 1) wrong.push(`${name}: it is the ${place + 1}th`);
    for (const [partition, { position, records, digest }] of Object.entries(partitions)) {
      const found = digestOf(events, Number(partition), position);
      if (found.records !== records || found.digest !== digest) {
        wrong.push(`${name}: partition ${partition} has other records`);
      }
    }
    if (proof === 'exact' && (list.total === undefined || read + rejected !== total_records)) {
      wrong.push(`${name}: exact, with ${read} of ${String(total_records)}`);
    }
    if (level === 'whole' && list.paging !== 'none') wrong.push(`${name}: ${level}`);
    if (level === 'anchored' && ['cursor', 'link', 'none'].includes(list.paging)) {
      wrong.push(`${name}: ${level}`);
    }
    return wrong;
  });
}

/** Count and digest of the live keys before a position. */
function digestOf(events: readonly Read[], partition: number, position: number) {
  const newest = new Map<string, number>();
  for (const event of events) {
    if (event.partition !== partition || event.offset >= BigInt(position)) continue;
    const { after, source } = event.value === null ? { after: null } : envelopeOf(event);
    if (after !== null) newest.set(event.key!, source.sequence);
    else newest.delete(event.key!);
  }
  let sum = 0n;
  for (const [key, sequence] of newest) {
    const hash = createHash('sha256').update(`${key}\n${sequence}`).digest('hex');
    sum = (sum + BigInt(`0x${hash.slice(0, 16)}`)) % 2n ** 64n;
  }
  return { records: newest.size, digest: sum.toString(16).padStart(16, '0') };
}

/** Compares status changes with what `before` and `after` of the list's events say: each change once, in the order of the events. */
export function wrongStatuses(
  changes: readonly Read[],
  events: readonly Read[],
  { subjects }: StatusTable,
): string[] {
  const expected = new Map<string, string[]>();
  const found = new Map<string, string[]>();
  const add = (to: Map<string, string[]>, id: string, step: string) =>
    to.set(id, [...(to.get(id) ?? []), step]);
  const fields = subjects.flatMap(({ path, fields: own }) => (path.length === 0 ? own : []));
  for (const event of events) {
    if (event.value === null) continue;
    const { op, before, after } = envelopeOf(event);
    if (op === 'r' || op === 'd') continue;
    for (const [field] of fields) {
      const [from, to] = [before?.[field!] ?? null, after?.[field!] ?? null];
      if (from !== to)
        add(expected, `${event.key} ${field}`, `${statusText(from)} -> ${statusText(to)}`);
    }
  }
  const ids = new Set<unknown>();
  const wrong: string[] = [];
  for (const { key, value } of changes) {
    if (value === null) continue;
    const { event_id, field, from, to } = value;
    if (ids.has(event_id)) wrong.push(`${key}: status change ${String(event_id)} is there twice`);
    ids.add(event_id);
    add(found, `${key} ${String(field)}`, `${statusText(from)} -> ${statusText(to)}`);
  }
  for (const id of new Set([...expected.keys(), ...found.keys()])) {
    const [want, got] = [expected.get(id) ?? [], found.get(id) ?? []];
    if (want.join() !== got.join()) wrong.push(`${id}: ${got.join()} instead of ${want.join()}`);
  }
  return wrong;
}

/** A status as events of status changes have it: a text, or null. */
function statusText(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

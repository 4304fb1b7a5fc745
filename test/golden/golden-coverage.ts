import { RESOURCES } from '../../src/sandbox/resources.ts';
import { STATUS_FIELDS } from '../../src/description/wine/order-status.ts';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import { orderStatusChangeCodec } from '../../src/description/wine/order-status.ts';
import { topicNames, valueSubject } from '../../src/schemas/events/topics.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import type { GoldenMessage } from './golden-kafka.ts';
import { PREFIX } from './golden-run.ts';
import type { GoldenRun } from './golden-run.ts';

const NAMES = topicNames(PREFIX);
const REJECTS = ['not-an-object', 'no-key', 'conflicting-duplicate', 'too-large', 'unreadable'];

/** Names of the things that every run must contain. */
export const IN_EACH_RUN: readonly string[] = [
  ...RESOURCES.flatMap((resource) => [
    ...['snapshot', 'c', 'u', 'd', 'tombstone'].map((what) => `${resource}: ${what}`),
    ...REJECTS.map((reason) => `${resource}: dead letter ${reason}`),
    `${resource}: further schema`,
    `${resource}: certificate`,
    `${resource}: resync done`,
    `${resource}: claim after another instance's`,
  ]),
  ...Object.entries(STATUS_FIELDS).flatMap(([subject, fields]) =>
    fields.map((field) => `status of ${subject}: ${field}`),
  ),
  ...['status header', 'dead letter of several parts', 'fenced instance'],
  ...['final declaration', 'certificate requested'],
];

/** Names of the things that several of the runs must contain. */
export const IN_SOME_RUNS: readonly string[] = [
  ...RESOURCES.flatMap((resource) => [`${resource}: republished`, `${resource}: aborted message`]),
  ...[
    'resumed snapshot',
    'Avro key',
    'text key',
    'personal fields hidden',
    'personal fields shown',
  ],
];

/** Counts what a run contains. */
export function coverageOf({ kafka, registry, instances }: GoldenRun): Map<string, number> {
  const counts = new Map<string, number>();
  const count = (what: string, n = 1) => counts.set(what, (counts.get(what) ?? 0) + n);
  const all = (topic: string): readonly GoldenMessage[] =>
    Array.from({ length: kafka.topics.get(topic)!.partitions }, (_, partition) =>
      kafka.log(topic, partition).flatMap(({ messages }) => messages),
    ).flat();
  const committed = (topic: string) =>
    all(topic).filter(({ transaction }) => transaction.outcome === 'commit');
  const json = (topic: string) =>
    committed(topic).flatMap(({ value }) =>
      value ? [JSON.parse(value.toString()) as Record<string, unknown>] : [],
    );

  for (const resource of RESOURCES) {
    const topic = NAMES.records(resource);
    for (const { key, value } of committed(topic)) {
      count(key![0] === 0 ? 'Avro key' : 'text key');
      if (value === null) {
        count(`${resource}: tombstone`);
        continue;
      }
      const { schemaId, payload } = unframe(value);
      const { op, before } = registry.codec(schemaId).images(payload);
      if (op === 'r') count(`${resource}: ${before ? 'republished' : 'snapshot'}`);
      else count(`${resource}: ${op}`);
    }
    const aborted = all(topic).filter(({ transaction }) => transaction.outcome === 'abort');
    count(`${resource}: aborted message`, aborted.length);
    const schemas = registry.versions(valueSubject(topic));
    count(`${resource}: further schema`, schemas.length - 1);
  }
  for (const { value } of committed(NAMES.deadLetters)) {
    const { resource, reason, part } = deadLetterCodec.decode(unframe(value!).payload);
    count(`${resource}: dead letter ${reason}`);
    if (part !== null && part > 1) count('dead letter of several parts');
  }
  for (const { value, headers } of committed(NAMES.records('order-status-changes'))) {
    const { subject, field } = orderStatusChangeCodec.decode(unframe(value!).payload);
    count(`status of ${subject}: ${field}`);
    count('status header', headers.length);
  }
  for (const { type, resource, status } of json(NAMES.signals)) {
    if (type === 'resync-ack' && status === 'done') count(`${String(resource)}: resync done`);
    if (type === 'certify-ack' && status === 'done') count('certificate requested');
  }
  for (const { resource } of json(NAMES.certificates)) count(`${String(resource)}: certificate`);
  const owners = new Map<string, unknown>();
  for (const { key, value } of committed(NAMES.cursors)) {
    const resource = key!.toString().split('/')[1]!;
    const { instance, firstRead } = JSON.parse(value!.toString()) as {
      instance: string;
      firstRead: { position: unknown };
    };
    const isNew = owners.get(resource) !== instance;
    if (isNew && owners.has(resource)) {
      count(`${resource}: claim after another instance's`);
      if (firstRead.position !== null) count('resumed snapshot');
    }
    owners.set(resource, instance);
  }
  for (const { blockMs } of json(NAMES.ledger)) if (blockMs === 0) count('final declaration');
  count('fenced instance', instances.filter(({ isFenced }) => isFenced).length);

  const bytes = [...kafka.topics.keys()].flatMap((topic) =>
    committed(topic).flatMap(({ value }) => value ?? []),
  );
  const has = (text: string) => bytes.some((value) => value.includes(text));
  const [isMasked, isShown] = [has('***'), has('+1 707 555') || has('@example.com')];
  if (isMasked && isShown) throw new Error('some personal fields are hidden, and others are not');
  count(isMasked ? 'personal fields hidden' : 'personal fields shown');
  return counts;
}

import avro from 'avsc';
import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it } from 'vitest';
import type { FieldSchema, RecordSchema } from '../../src/schemas/avro/avro-schema.ts';
import { valueSchemaOf } from '../../src/schemas/events/envelope.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { readTail } from '../../src/kafka/fetch/kafka-tail.ts';
import { topicEnds } from './support/topic-ends.ts';
import type { TailMessage } from '../../src/kafka/log.ts';
import { follow } from './support/follow.ts';
import { checkRecords, envelopeOf, truthOf } from './support/checker.ts';
import { registered } from './support/registered.ts';
import { swept } from './support/rounds.ts';
import { besideEachOther, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest, settings } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';

const PATIENCE = { timeout: 30_000 };
besideEachOther();

/** One with dates, one without, and one that is described: what is added to that is not. */
const GROWING = ['customers', 'inventory', 'orders'] as const;
type Growing = (typeof GROWING)[number];

/** A number of each that nobody has described: it becomes text. */
const CONVERTED: Readonly<Record<Growing, string>> = {
  customers: 'lifetime_value',
  inventory: 'quantity_on_hand',
  orders: 'rating',
};

const topicOf = (resource: Growing) => `growth.${resource}`;

/** Something of each of the three. */
function each<T>(of: (resource: Growing) => T): Record<Growing, T> {
  return Object.fromEntries(GROWING.map((name) => [name, of(name)])) as Record<Growing, T>;
}

async function versions(): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const resource of GROWING)
    counts[resource] = (await registered(topicOf(resource))).schemas.length;
  return counts;
}

/** The keys of the records that are changed, as the sandbox says. */
function changedBy(sandbox: Sandbox, alter: (resource: Growing) => void) {
  const before = sandbox.truth.changes.length;
  GROWING.forEach(alter);
  const changes = sandbox.truth.changes.slice(before);
  return each((resource) => {
    const own = changes.filter((change) => change.resource === resource);
    return [...new Set(own.map(({ key }) => String(key)))].sort();
  });
}

describe('a schema grows while the service runs', () => {
  it('three times over; all versions fit each other, and nothing is lost or published twice', async () => {
    const sandbox = await sandboxForTest({ records: { customers: 60, inventory: 50, orders: 40 } });
    const env = {
      ...settings(sandbox, 'growth', folderForTest()),
      RESOURCES: GROWING.join(),
      POLL_INTERVAL_MS: '200', // leaves more of the quota to sweeps:
      SWEEP_INTERVAL_MS: '200', // what is published again would show in a complete reading
      LOG_LEVEL: 'debug',
    };
    const service = cliForTest(['run'], env);
    for (const resource of GROWING) {
      await service.logged((line) => line.event === 'ready' && line.resource === resource);
    }
    const events = each((resource) => follow(topicOf(resource)));

    /** Awaits that the topics tell the truth, and that all was read anew; the keys of the news. */
    const published = async () => {
      const known = each((resource) => events[resource].length);
      for (const resource of GROWING) {
        const truth = truthOf(sandbox, resource);
        const violations = () => checkRecords(events[resource], truth).violations;
        await expect.poll(violations, PATIENCE).toEqual([]);
      }
      await Promise.all(GROWING.map((resource) => swept(service, resource)));
      return each((resource) =>
        events[resource]
          .slice(known[resource])
          .map(({ key }) => key!)
          .sort(),
      );
    };
    await published();
    expect(await versions()).toEqual({ customers: 1, inventory: 1, orders: 1 });

    const added = changedBy(sandbox, (resource) => {
      sandbox.addField(resource, 'rating', 4.5, { existing: 5 });
      sandbox.addField(resource, 'cellar', { row: 'A' });
      const [key] = sandbox.truth.keys(resource);
      sandbox.change(resource, key!, (record) => record); // carries both
    });
    for (const keys of Object.values(added)) expect(keys.length).toBeGreaterThanOrEqual(5);
    expect(await published()).toEqual(added);
    expect(await versions()).toEqual({ customers: 2, inventory: 2, orders: 2 });

    const nested = changedBy(sandbox, (resource) =>
      sandbox.addField(resource, 'cellar.shelf.level', 3, { existing: 4 }),
    );
    expect(await published()).toEqual(nested);
    expect(await versions()).toEqual({ customers: 3, inventory: 3, orders: 3 });

    const inWords = (value: unknown) => `about ${JSON.stringify(value)}`;
    const retyped = changedBy(sandbox, (resource) =>
      sandbox.convertField(resource, CONVERTED[resource], inWords, { existing: 3 }),
    );
    expect(await published()).toEqual(retyped);
    expect(await versions()).toEqual({ customers: 3, inventory: 3, orders: 3 });
    for (const resource of GROWING) {
      const name = CONVERTED[resource];
      const { schemas } = await registered(topicOf(resource));
      expect(fieldOf(schemas.at(-1)!, name)?.type).toEqual(['null', 'double']);
      expect(retyped[resource]).toHaveLength(3);
      for (const key of retyped[resource]) {
        const event = events[resource].filter((read) => read.key === key).at(-1)!;
        const { after, changed } = envelopeOf(event);
        const record = truthOf(sandbox, resource).get(key) as Record<string, unknown>;
        expect(record[name]).toMatch(/^about \d/);
        expect(changed).toContain(name);
        expect(after![name]).toBeNull();
        expect(after!.unmapped).toEqual({ [`/${name}`]: JSON.stringify(record[name]) });
      }
    }
    const lines = service.lines();
    expect(lines.filter(({ event }) => event === 'ready')).toHaveLength(GROWING.length);
    // kafkajs tells of a broker that is just loading its groups, and goes on.
    const own = lines.filter(({ component }) => component !== 'kafkajs');
    expect(own.filter(({ level }) => level === 'warn' || level === 'error')).toEqual([]);

    for (const resource of GROWING) {
      await expectAllFit(topicOf(resource));
      await expectBothRead(topicOf(resource), retyped[resource][0]!);
    }

    // A restart goes on from what was inferred, whatever it reads first.
    const known = each((resource) => events[resource].length);
    expect(await service.end('SIGTERM')).toBe(0);
    const again = cliForTest(['run'], env);
    await Promise.all(GROWING.map((resource) => swept(again, resource)));
    expect(each((resource) => events[resource].length)).toEqual(known);
    const [customer] = sandbox.truth.keys('customers');
    sandbox.change('customers', customer!, { notes: 'after the restart' });
    await expect.poll(() => events.customers.length, PATIENCE).toBe(known.customers + 1);
    expect(await versions()).toEqual({ customers: 3, inventory: 3, orders: 3 });
    expect(await again.end('SIGTERM')).toBe(0);
  });
});

/** Has the registry hold each version against every other. */
async function expectAllFit(topic: string): Promise<void> {
  const { schemas, compatibilityLevel, fits } = await registered(topic);
  expect(compatibilityLevel).toBe('FULL_TRANSITIVE');
  const yes = schemas.map(() => true);
  for (const schema of schemas) expect(await fits(schema)).toEqual(yes);
  const text = JSON.stringify(schemas[0]).replace('["null","string"]', '["null","boolean"]');
  expect(await fits(JSON.parse(text) as RecordSchema)).not.toContain(true); // it would say so
}

/** Has programs with the first and the last schema read what was written in the other one. */
async function expectBothRead(topic: string, changedLast: string): Promise<void> {
  const { schemas } = await registered(topic);
  const [first, last] = [schemas[0]!, schemas.at(-1)!];
  const messages = await rawMessages(topic);
  const oldest = messages[0]!.value!;
  const newest = messages.filter(({ key }) => key!.toString() === changedLast).at(-1)!.value!;

  const ofNewest = { written: readBy(last, last, newest), read: readBy(first, last, newest) };
  expect(ofNewest.written).toMatchObject(ofNewest.read); // fewer fields, the same values
  expect(ofNewest.read.after.unmapped).toEqual(ofNewest.written.after.unmapped);
  expect(ofNewest.read.after).not.toHaveProperty('cellar');

  const ofOldest = { written: readBy(first, first, oldest), read: readBy(last, first, oldest) };
  expect(ofOldest.read).toMatchObject(ofOldest.written);
  expect(ofOldest.read.after.cellar).toBeNull();
}

/** The committed messages of a topic, as they are in Kafka; those of a key in their order. */
async function rawMessages(topic: string): Promise<TailMessage[]> {
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  const read: TailMessage[] = [];
  await readTail({
    kafka,
    topic,
    from: new Map(),
    to: await topicEnds(kafka, topic),
    onMessages: (messages) => Promise.resolve(void read.push(...messages)),
  });
  return read;
}

/** What a program with one schema makes of what another has written, by the rules of Avro alone. */
function readBy(reader: RecordSchema, writer: RecordSchema, message: Buffer) {
  const [to, from] = [reader, writer].map((schema) => avro.Type.forSchema(schema as avro.Schema));
  const read = to!.fromBuffer(message.subarray(5), to!.createResolver(from!)) as unknown;
  return JSON.parse(JSON.stringify(read)) as { after: Record<string, unknown> };
}

describe.concurrent('an initial snapshot', TIMEOUT, () => {
  const PAGE = { PAGE_SIZE: '21' }; // each begins 10 records before the end of the one before
  const LONG_AGO = '2024-03-01T12:00:00.000Z';
  const [ON_PAGE_2, ON_PAGE_3, ON_PAGE_4] = [25, 38, 50];

  /** Lists in which one record has a field that no other has; polls don't come by it. */
  async function sandboxWith(
    rare: Record<string, number>,
    count: number,
    sort: 'key-asc' | 'key-desc',
  ) {
    const sandbox = await sandboxForTest({ records: { customers: count, inventory: count }, sort });
    for (const resource of ['customers', 'inventory'] as const) {
      const keys = [...sandbox.truth.keys(resource)];
      for (const [name, place] of Object.entries(rare)) {
        const dated = resource === 'customers' ? { updated_at: LONG_AGO } : {};
        sandbox.change(resource, keys[place]!, { [name]: { at: LONG_AGO, of: place }, ...dated });
      }
    }
    return sandbox;
  }
  async function readOnce(
    sandbox: Sandbox,
    prefix: string,
  ): Promise<Record<string, readonly RecordSchema[]>> {
    const env = {
      ...settings(sandbox, prefix, folderForTest()),
      ...PAGE,
      RESOURCES: 'customers,inventory',
    };
    const service = cliForTest(['run'], env);
    const schemas: Record<string, readonly RecordSchema[]> = {};
    for (const resource of ['customers', 'inventory'] as const) {
      await service.logged(
        (line) => line.event === 'first-read' && line.resource === resource && line.done === true,
      );
      const topic = `${prefix}.${resource}`;
      const events = await readTopic(inject('brokers'), inject('registryUrl'), topic);
      expect(checkRecords(events, truthOf(sandbox, resource)).violations).toEqual([]);
      schemas[resource] = (await registered(topic)).schemas;
    }
    await service.end('SIGTERM');
    return schemas;
  }

  it('makes one version of three pages, the same whatever comes first', async () => {
    const rare = { seldom: ON_PAGE_2, hardly_ever: ON_PAGE_3 };
    const [rising, falling] = await Promise.all([
      sandboxWith(rare, 43, 'key-asc').then((sandbox) => readOnce(sandbox, 'three-rising')),
      sandboxWith(rare, 43, 'key-desc').then((sandbox) => readOnce(sandbox, 'three-falling')),
    ]);
    for (const resource of ['customers', 'inventory']) {
      expect(rising[resource]).toHaveLength(1);
      for (const name of Object.keys(rare))
        expect(fieldOf(rising[resource]![0]!, name)).toBeDefined();
      expect(falling[resource]).toEqual(rising[resource]);
    }
  });

  it('makes another of what comes on the fourth page', async () => {
    const { customers, inventory } = await readOnce(
      await sandboxWith({ seldom: ON_PAGE_2, later: ON_PAGE_4 }, 60, 'key-asc'),
      'fourth-page',
    );
    for (const schemas of [customers!, inventory!]) {
      expect(schemas).toHaveLength(2);
      expect(schemas.map((schema) => fieldOf(schema, 'seldom') !== undefined)).toEqual([
        true,
        true,
      ]);
      expect(schemas.map((schema) => fieldOf(schema, 'later') !== undefined)).toEqual([
        false,
        true,
      ]);
    }
  });
});

/** The field of a record's image in the schema of its events. */
function fieldOf(schema: RecordSchema, name: string): FieldSchema | undefined {
  return valueSchemaOf(schema).fields.find((field) => field.name === name);
}

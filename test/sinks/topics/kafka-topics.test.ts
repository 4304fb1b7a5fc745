import type { Kafka } from 'kafkajs';
import { describe, expect, it } from 'vitest';
import { describeError } from '../../../src/core/errors.ts';
import { findingText } from '../../../src/schemas/events/topic-findings.ts';
import { topicTable } from '../../../src/schemas/events/topics.ts';
import type { Call } from '../../../src/kafka/client/protocol.ts';
import type { Connections } from '../../../src/kafka/client/connections.ts';
import { protocolError } from '../../../src/kafka/client/protocol-errors.ts';
import { protocolReader } from '../../../src/kafka/client/protocol.ts';
import { loadConfig } from '../../../src/config/load-config.ts';
import { parseDescription } from '../../../src/description/read-description.ts';
import type { RecordSchema } from '../../../src/schemas/avro/avro-schema.ts';
import type { Registry } from '../../../src/schemas/registry/registry.ts';
import type { KafkaClients } from '../../../src/sinks/open-kafka.ts';
import { openDestination } from '../../../src/sinks/topics/destination.ts';
import { inspectTopics, openTopics } from '../../../src/sinks/topics/kafka-topics.ts';
import type { Metadata, TopicSettings } from '../../../src/kafka/client/topic-calls.ts';
import type { TopicResult } from '../../../src/sinks/topics/create-topics.ts';

const topics = (replication: number) =>
  topicTable({ prefix: 'wine', lists: [{ name: 'products' }], partitions: 3, replication });

interface Made {
  readonly topic: string;
  readonly partitions: number;
  readonly replication: number;
  readonly settings: ReadonlyMap<string, string>;
}

interface ClusterOptions {
  /** Answer to the creation of a topic. Default it is made. */
  readonly onCreate?: (topic: Made) => Omit<TopicResult, 'topic'> | undefined;
  /** Topics that are there. */
  readonly there?: readonly Made[];
  /** Codes with which the first looks at topics that are there are answered. */
  readonly looks?: readonly number[];
  /** Code with which settings are not told, or that this request is not known. */
  readonly settings?: number | 'unknown request';
  readonly brokers?: number;
}

const [UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE, UNSUPPORTED_VERSION] = [3, 5, 35];
const [NOT_ALLOWED, INVALID_PARTITIONS, INVALID_REPLICATION, INVALID_CONFIG] = [29, 37, 38, 40];
const POLICY_VIOLATION = 44;

/** A cluster that answers what is asked about topics. */
function cluster(options: ClusterOptions = {}) {
  const looks = [...(options.looks ?? [])];
  const made = new Map((options.there ?? []).map((each) => [each.topic, each]));
  /** What was to be made, one a try. */
  const tries: Made[] = [];
  const addresses = Array.from({ length: options.brokers ?? 1 }, (_, id) => ({
    ...{ id, host: 'localhost', port: id + 1 },
  }));

  const metadata = ({ body }: Call<unknown>): Metadata => {
    const request = protocolReader(body);
    const names = request.array(() => request.string()!);
    const described = names.map((topic) => {
      const found = made.get(topic);
      const errorCode = found ? (looks.shift() ?? 0) : UNKNOWN_TOPIC;
      const partitions = Array.from({ length: found?.partitions ?? 0 }, (_, partition) => ({
        ...{ partition, leader: 0, leaderEpoch: 0, replicas: Math.max(1, found!.replication) },
      }));
      return { topic, errorCode, partitions, operations: undefined };
    });
    return { clusterId: 'c', controllerId: 0, brokers: addresses, topics: described };
  };
  const creation = ({ body }: Call<unknown>): readonly TopicResult[] => {
    const request = protocolReader(body);
    const asked = request.array((): Made => {
      const head = { topic: request.string()!, partitions: request.int32() };
      const replication = request.int16();
      request.array(() => request.int32());
      const entries = request.array(() => [request.string()!, request.string()!] as const);
      return { ...head, replication, settings: new Map(entries) };
    });
    request.int32();
    const isDryRun = request.int8() === 1;
    return asked.map((each) => {
      tries.push(each);
      const refusal = options.onCreate?.(each);
      if (!refusal && !isDryRun) made.set(each.topic, each);
      return { topic: each.topic, ...(refusal ?? { errorCode: 0, message: null }) };
    });
  };
  const configs = ({ body }: Call<unknown>): readonly TopicSettings[] => {
    if (options.settings === 'unknown request') {
      throw protocolError(UNSUPPORTED_VERSION, 'DescribeConfigs');
    }
    const request = protocolReader(body);
    const names = request.array(() => {
      request.int8();
      const name = request.string()!;
      request.array(() => request.string());
      return name;
    });
    const errorCode = options.settings ?? 0;
    return names.map((topic) => ({
      ...{ topic, errorCode, settings: errorCode ? new Map() : made.get(topic)!.settings },
    }));
  };
  const answers: Record<string, (call: Call<unknown>) => unknown> = {
    ...{ Metadata: metadata, CreateTopics: creation, DescribeConfigs: configs },
  };
  const connections: Partial<Connections> = {
    seeds: () => Promise.resolve([addresses[0]!]),
    send: async <T>(_: unknown, call: Call<T>) =>
      Promise.resolve(answers[call.name]!(call as Call<unknown>) as T),
  };
  const asked = { kafka: {} as Kafka, connections: connections as Connections, topics };
  return { asked: { ...asked, replication: undefined }, looks, made, tries };
}

const failed = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => new Error('it succeeded'),
    (error: unknown) => error,
  );

it('says of a wrong cleanup.policy the command that mends it', async () => {
  const wrong = (replication: number) =>
    topics(replication).map((spec) => ({
      ...spec,
      configEntries: [{ name: 'cleanup.policy', value: 'compact,delete' }],
    }));
  const { asked } = cluster();
  await expect(openTopics({ ...asked, topics: wrong })).rejects.toMatchObject({
    code: 'TOPIC_SETTINGS',
    message: expect.stringContaining(
      'creating it again): kafka-configs.sh --bootstrap-server "$KAFKA_BROKERS" --alter --entity-type topics --entity-name wine.products --add-config cleanup.policy=compact && kafka-configs.sh',
    ) as string,
  });
});

describe('topics that were made just now', () => {
  it('are waited for until the brokers know of them', async () => {
    const { asked, looks } = cluster({ looks: [UNKNOWN_TOPIC, LEADER_NOT_AVAILABLE] });
    const made = topics(1).map(({ topic, numPartitions }) => [topic, numPartitions] as const);
    expect((await openTopics(asked)).partitions).toEqual(new Map(made));
    expect(looks).toEqual([]);
  });

  it('are not waited for when this user may not see them', async () => {
    const { asked, looks } = cluster({ looks: [NOT_ALLOWED, UNKNOWN_TOPIC] });
    await expect(openTopics(asked)).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
    expect(looks.length).toBeLessThan(2);
  });
});

describe('a cluster that refuses a setting', () => {
  const refusing = (
    errorCode: number,
    message: (topic: Made) => string | null,
    ...names: string[]
  ) =>
    cluster({
      onCreate: (made) =>
        names.some((name) => made.settings.has(name))
          ? { errorCode, message: message(made) }
          : undefined,
    });

  it.each([
    ['INVALID_CONFIG', INVALID_CONFIG],
    ['POLICY_VIOLATION', POLICY_VIOLATION],
  ])('gets the topic without what it names, and a warning says so: %s', async (name, code) => {
    const { asked, made } = refusing(code, () => 'cannot set "segment.ms"', 'segment.ms');
    const { warnings } = await openTopics(asked);
    expect(warnings.map(findingText)).toContain(
      `wine.cursors has segment.ms=the brokers' default, 600000 is wanted: the brokers refuse this setting: ${name}: cannot set "segment.ms"`,
    );
    expect(warnings.map(({ topic, setting }) => `${topic} ${setting}`).sort()).toEqual([
      'wine.cursors segment.ms',
      'wine.ledger segment.ms',
    ]);
    expect(made.get('wine.ledger')!.settings.get('message.timestamp.type')).toBe('LogAppendTime');
  });

  it('gets the topic without all wishes where it names none', async () => {
    const { asked, made } = refusing(POLICY_VIOLATION, () => null, 'segment.ms');
    await openTopics(asked);
    expect([...made.get('wine.ledger')!.settings.keys()]).toEqual(['cleanup.policy']);
    expect([...made.get('wine.products')!.settings.keys()]).toContain('compression.type');
  });

  it('asks in few tries, one setting after the other', async () => {
    const first = ({ settings }: Made) =>
      [...settings.keys()].find((name) => name !== 'cleanup.policy');
    const { asked, tries } = cluster({
      onCreate: (made) =>
        first(made) === undefined
          ? undefined
          : { errorCode: INVALID_CONFIG, message: `no ${first(made)!}` },
    });
    await openTopics(asked);
    expect(tries.filter(({ topic }) => topic === 'wine.ledger')).toHaveLength(4);
  });

  it('is told which topic needs a setting that can not be left out', async () => {
    const { asked } = refusing(
      INVALID_CONFIG,
      () => 'cannot set "cleanup.policy"',
      'cleanup.policy',
    );
    const error = await failed(openTopics(asked));
    expect(error).toMatchObject({ code: 'KAFKA_REFUSED' });
    expect(describeError(error)).toContain(
      'Kafka refuses to create the topic wine.cursors (INVALID_CONFIG: cannot set "cleanup.policy"): ask the operator of the cluster, or have it created beforehand: wine.cursors (1 partition, cleanup.policy=compact; if possible segment.ms=600000',
    );
  });

  it('is asked the same without anything being made', async () => {
    const { asked, made } = refusing(INVALID_CONFIG, () => 'cannot set "segment.ms"', 'segment.ms');
    const { absent, warnings } = await inspectTopics(asked);
    expect(absent).toHaveLength(topics(1).length);
    expect(warnings.map(({ setting }) => setting)).toEqual(['segment.ms', 'segment.ms']);
    expect(made.size).toBe(0);
  });
});

describe('a cluster that refuses a number', () => {
  const refusing = (errorCode: number, message: string) =>
    cluster({
      brokers: 3,
      onCreate: ({ replication }) => (replication === 2 ? undefined : { errorCode, message }),
    });

  it.each([
    [
      'partitions',
      INVALID_PARTITIONS,
      'at most 2 partitions',
      /INVALID_PARTITIONS: at most 2 partitions\): set TOPIC_PARTITIONS/,
    ],
    [
      'copies',
      INVALID_REPLICATION,
      'must be 2',
      /INVALID_REPLICATION_FACTOR: must be 2\): set TOPIC_REPLICATION/,
    ],
    [
      'copies, by a policy',
      POLICY_VIOLATION,
      'replication factor must be 2',
      /set TOPIC_REPLICATION/,
    ],
  ])('is a line with the setting: %s', async (_, code, message, line) => {
    const error = await failed(openTopics({ ...refusing(code, message).asked, replication: 3 }));
    expect(describeError(error)).toMatch(line);
  });

  it('chooses the copies where nobody has set them', async () => {
    const { asked, made } = cluster({
      brokers: 3,
      onCreate: ({ replication }) =>
        replication === -1 ? undefined : { errorCode: INVALID_REPLICATION, message: 'must be 4' },
    });
    const { warnings } = await openTopics(asked);
    expect(made.get('wine.cursors')).toMatchObject({ replication: -1 });
    expect(made.get('wine.cursors')!.settings.has('min.insync.replicas')).toBe(false);
    expect(warnings.map(findingText).join()).toContain('INVALID_REPLICATION_FACTOR: must be 4');
  });
});

describe('topics of an administrator', () => {
  const there = topics(1).map(({ topic, numPartitions, configEntries }) => ({
    ...{ topic, partitions: numPartitions, replication: 1 },
    settings: new Map(configEntries.map(({ name, value }) => [name, value])),
  }));

  it('are named in one line with what they need where this user may not make them', async () => {
    const { asked } = cluster({
      there: there.slice(1),
      onCreate: () => ({ errorCode: NOT_ALLOWED, message: 'Authorization failed.' }),
    });
    const error = await failed(openTopics(asked));
    expect(error).toMatchObject({ code: 'KAFKA_REFUSED' });
    expect(describeError(error)).toBe(
      'this user may not create topics (TOPIC_AUTHORIZATION_FAILED), and these do not exist or are not visible to it: wine.products. Allow it Create and Describe on them, or have them created beforehand: wine.products (3 partitions, cleanup.policy=compact; if possible min.compaction.lag.ms=2592000000, compression.type=producer)',
    );
  });

  it.each([
    ['this user may not look at', NOT_ALLOWED],
    ['this cluster does not tell', 'unknown request' as const],
  ])('are taken with settings that %s, and a warning', async (_, settings) => {
    const { asked, tries } = cluster({ there, settings });
    const { warnings, partitions } = await openTopics(asked);
    expect(partitions.size).toBe(there.length);
    expect(tries).toEqual([]);
    expect(warnings.map(findingText)).toContain(
      'the settings of wine.products are not shown to this user, cleanup.policy=compact is needed: otherwise events are lost; allow DescribeConfigs on the topic, so that its settings can be checked',
    );
  });

  it('are taken with other partitions, and a warning for another compression', async () => {
    const other = there.map((each) => ({
      ...each,
      ...(each.topic === 'wine.products' && { partitions: 7 }),
      settings: new Map([...each.settings, ['compression.type', 'zstd'] as const]),
    }));
    const { warnings, partitions } = await openTopics(cluster({ there: other }).asked);
    expect(partitions.get('wine.products')).toBe(7);
    expect(warnings.map(findingText)).toContain(
      'wine.products has compression.type=zstd, producer is wanted: the brokers recompress each batch, and some clients need a package to read it',
    );
  });
});

describe('openDestination', () => {
  const SHOP = `
format: 1
api: shop
auth: none
quota: 2/s
list: { records: '', key: id, paging: none }
lists:
  orders:
    path: /orders
    statuses: { subjects: { order: { fields: [state] } } }
  customers: { path: /customers }
  returns:
    path: /returns
    statuses: { topic: returned, subjects: { return: { fields: [state] } } }
`;

  it('opens a topic of status changes, with a schema of its own, for each list that has statuses', async () => {
    const description = parseDescription(SHOP, 'shop.yaml');
    const env = { KAFKA_BROKERS: 'localhost:1', SCHEMA_REGISTRY_URL: 'http://localhost:2' };
    const config = loadConfig({ env, cwd: '/', needs: ['kafka', 'registry'], description });
    const registered: string[] = [];
    const registry = {
      latest: () => Promise.resolve(undefined),
      register: (subject: string, { name, namespace }: RecordSchema) =>
        Promise.resolve(registered.push(`${subject} ${namespace}.${name}`)),
    } as Partial<Registry> as Registry;
    const { asked, made } = cluster();
    const links: Partial<KafkaClients> = { ...asked, registry };
    const { statusChanges } = await openDestination(config, links as KafkaClients);
    expect([...statusChanges]).toEqual([
      ['orders', { topic: 'shop.orders-status-changes', schemaId: 1 }],
      ['returns', { topic: 'shop.returned', schemaId: 2 }],
    ]);
    expect(registered.slice(0, 2)).toEqual([
      'shop.orders-status-changes-value cellarstream.shop.orders.StatusChange',
      'shop.returned-value cellarstream.shop.returns.StatusChange',
    ]);
    const topics = [...made.keys()].filter((topic) => /status|returned/.test(topic));
    expect(topics).toEqual(['shop.orders-status-changes', 'shop.returned']);
  });
});

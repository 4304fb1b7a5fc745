import type { Deed, Received } from './fault.ts';
import type {
  Answers,
  Api,
  BrokerAddress,
  FetchedPartition,
  Identity,
  Isolation,
  PartitionAnswer,
} from './protocol.ts';
import type { Transaction, Transactions } from './transactions.ts';

const NONE = 0;
const UNKNOWN_TOPIC_OR_PARTITION = 3;
const NOT_LEADER_OR_FOLLOWER = 6;
const NOT_COORDINATOR = 16;
const OPERATION_NOT_ATTEMPTED = 55;
const FENCED_LEADER_EPOCH = 74;
const UNKNOWN_LEADER_EPOCH = 75;
const EARLIEST = -2;
const NOTHING = { end: -1, stableEnd: -1, aborted: [], records: Buffer.alloc(0) };

export interface KnownPartition {
  readonly leader: number;
  readonly leaderEpoch: number;
  readonly end: number;
  /** Where the first transaction that is open begins; the end without one. */
  readonly stableEnd: number;
}

/** What a broker knows of its cluster. */
export interface ClusterState {
  readonly addresses: readonly BrokerAddress[];
  readonly partitions: ReadonlyMap<string, number>;
  readonly loginMs: number;
  readonly coordinator: number;
  readonly transactions: Transactions;
  leader(topic: string, partition: number): number;
  /** What a broker knows of a partition; one that stands still knows what it knew. */
  known(broker: number, topic: string, partition: number): KnownPartition;
  append(
    topic: string,
    partition: number,
    batch: Buffer,
    transaction: Transaction | undefined,
  ): Promise<{ readonly errorCode: number; readonly baseOffset: number }>;
  fetch(
    topic: string,
    partition: number,
    offset: number,
    isolation: Isolation,
    maxBytes: number,
  ): Omit<FetchedPartition, 'partition'>;
  /** Resolves when something is written next, or after so many ms. */
  nextWrite(withinMs: number): Promise<void>;
  readonly settings: Readonly<Record<string, string>>;
}

/** Carries a request out, but for what is to be refused, and says what has come of it. */
export function answerTo<A extends Api>(
  cluster: ClusterState,
  received: Received<A>,
  deed: Deed,
): Promise<Answers[A]> | Answers[A] {
  return SERVE[received.api](cluster, received, deed);
}

type Serve<A extends Api> = (
  cluster: ClusterState,
  received: Received<A>,
  deed: Deed,
) => Promise<Answers[A]> | Answers[A];

const SERVE: { readonly [A in Api]: Serve<A> } = {
  ApiVersions: () => ({}),
  SaslHandshake: () => ({}),
  SaslAuthenticate: ({ loginMs }) => ({ lifetimeMs: loginMs }),

  Metadata: (cluster, { body, broker }, deed) => ({
    brokers: cluster.addresses,
    // None are named where all are meant.
    topics: (body.topics.length > 0 ? body.topics : [...cluster.partitions.keys()]).map((topic) => {
      const count = cluster.partitions.get(topic) ?? 0;
      const errorCode = refusalOf(deed, { topic }) ?? (count ? NONE : UNKNOWN_TOPIC_OR_PARTITION);
      const partitions = Array.from({ length: errorCode ? 0 : count }, (_, partition) => ({
        partition,
        ...cluster.known(broker, topic, partition),
      }));
      return { topic, errorCode, partitions };
    }),
  }),

  ListOffsets: (cluster, { body, broker }, deed) => ({
    topics: body.topics.map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.map(({ partition, leaderEpoch, time }) => {
        const known = cluster.known(broker, topic, partition);
        const errorCode =
          refusalOf(deed, { topic, partition }) ??
          (known.leader !== broker
            ? NOT_LEADER_OR_FOLLOWER
            : leaderEpoch > known.leaderEpoch
              ? UNKNOWN_LEADER_EPOCH
              : leaderEpoch < known.leaderEpoch && leaderEpoch >= 0
                ? FENCED_LEADER_EPOCH
                : NONE);
        if (errorCode !== NONE) return { partition, errorCode };
        const end = body.isolation === 'committed' ? known.stableEnd : known.end;
        return { partition, errorCode, offset: time === EARLIEST ? 0 : end };
      }),
    })),
  }),

  DescribeConfigs: ({ settings }, { body }) => ({
    resources: body.resources.map((resource) => ({ ...resource, settings })),
  }),

  Fetch: async (cluster, { body, broker }, deed) => {
    const look = (): Answers['Fetch'] => ({
      errorCode: NONE,
      topics: body.topics.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map(({ partition, offset, maxBytes }) => {
          const found = cluster.fetch(topic, partition, offset, body.isolation, maxBytes);
          const isForeign = cluster.known(broker, topic, partition).leader !== broker;
          const refusal =
            refusalOf(deed, { topic, partition }) ??
            (isForeign ? NOT_LEADER_OR_FOLLOWER : undefined);
          if (refusal === undefined) return { partition, ...found };
          return { ...NOTHING, partition, errorCode: refusal };
        }),
      })),
    });
    const isEmpty = ({ topics }: Answers['Fetch']) =>
      topics.every(({ partitions }) =>
        partitions.every(({ errorCode, records }) => errorCode === NONE && records.length === 0),
      );
    const answer = look();
    if (!isEmpty(answer)) return answer;
    await cluster.nextWrite(body.waitMs);
    return look();
  },

  FindCoordinator: (cluster, _, deed) => ({
    errorCode: refusalOf(deed) ?? NONE,
    broker: cluster.addresses[cluster.coordinator]!,
  }),

  InitProducerId: (cluster, { body, broker }, deed) => {
    const isForeign = body.transactionalId !== null && broker !== cluster.coordinator;
    const errorCode = refusalOf(deed) ?? (isForeign ? NOT_COORDINATOR : NONE);
    if (errorCode !== NONE) return { errorCode, producerId: '-1', epoch: -1 };
    return cluster.transactions.init(body);
  },

  AddPartitionsToTxn: (cluster, { body, broker }, deed) => {
    const all = body.topics.flatMap(({ topic, partitions }) =>
      partitions.map((partition) => ({ topic, partition })),
    );
    const answer = (codeOf: (each: (typeof all)[number]) => number) => ({
      topics: body.topics.map(({ topic, partitions }) => ({
        topic,
        partitions: partitions.map((partition) => ({
          partition,
          errorCode: codeOf({ topic, partition }),
        })),
      })),
    });
    const refused = all.find((each) => refusalOf(deed, each) !== undefined);
    if (refused) return answer((each) => refusalOf(deed, each) ?? OPERATION_NOT_ATTEMPTED);
    if (broker !== cluster.coordinator) return answer(() => NOT_COORDINATOR);
    const errorCode = cluster.transactions.add(body, all.map(nameOf));
    return answer(() => errorCode);
  },

  Produce: async (cluster, { body, broker }, deed) => {
    const write = async (
      topic: string,
      { partition, batch }: { partition: number; batch: Buffer },
    ): Promise<PartitionAnswer> => {
      const refusal = refusalOf(deed, { topic, partition });
      if (refusal !== undefined) return { partition, errorCode: refusal };
      if (cluster.leader(topic, partition) !== broker) {
        return { partition, errorCode: NOT_LEADER_OR_FOLLOWER };
      }
      const { transactionalId } = body;
      if (transactionalId === null) {
        return { partition, ...(await cluster.append(topic, partition, batch, undefined)) };
      }
      const transaction = cluster.transactions.verify(
        transactionalId,
        senderOf(batch),
        nameOf({ topic, partition }),
      );
      if (typeof transaction === 'number') return { partition, errorCode: transaction };
      return { partition, ...(await cluster.append(topic, partition, batch, transaction)) };
    };
    const topics = body.topics.map(async ({ topic, partitions }) => {
      const answers = await Promise.all(partitions.map((each) => write(topic, each)));
      return { topic, partitions: answers.filter(({ partition }) => !isOmitted(deed, partition)) };
    });
    return { topics: await Promise.all(topics) };
  },

  EndTxn: (cluster, { body, broker }, deed) => {
    const isForeign = broker !== cluster.coordinator;
    const refusal = refusalOf(deed) ?? (isForeign ? NOT_COORDINATOR : undefined);
    return { errorCode: refusal ?? cluster.transactions.end(body) };
  },
};

function nameOf({ topic, partition }: { topic: string; partition: number }): string {
  return `${topic} ${partition}`;
}

/** Undefined where it is not to be refused. */
function refusalOf(
  deed: Deed,
  of: { readonly topic?: string; readonly partition?: number } = {},
): number | undefined {
  if (typeof deed !== 'object' || !('refuse' in deed)) return undefined;
  if (deed.topic !== undefined && deed.topic !== of.topic) return undefined;
  if (deed.partition !== undefined && deed.partition !== of.partition) return undefined;
  return deed.refuse;
}

function isOmitted(deed: Deed, partition: number): boolean {
  return typeof deed === 'object' && 'omit' in deed && deed.omit === partition;
}

function senderOf(batch: Buffer): Identity {
  return { producerId: String(batch.readBigInt64BE(43)), epoch: batch.readInt16BE(51) };
}

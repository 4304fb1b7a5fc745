import { describe, expect, it } from 'vitest';
import {
  PARTITIONS,
  SHORT_MS,
  TOPIC,
  arrived,
  checkServers,
  committed,
  each,
  gate,
  message,
  messages,
  openOn,
  startCluster,
  told,
} from './on-scripted-cluster.ts';

checkServers();

const COMMIT = ['AddPartitionsToTxn', 'Produce', 'EndTxn'];
const UNKNOWN_TOPIC_OR_PARTITION = 3;

/** By partition, the bytes of each batch that was sent. */
function batchesSent(cluster: Awaited<ReturnType<typeof startCluster>>): Buffer[][] {
  const sent: Buffer[][] = Array.from({ length: PARTITIONS }, () => []);
  for (const { body } of cluster.of('Produce')) {
    for (const { partition, batch } of body.topics[0]!.partitions) sent[partition]!.push(batch);
  }
  return sent;
}

describe('what passes is sent again as the same bytes, and is there once', () => {
  it.each([
    ['NOT_LEADER_OR_FOLLOWER', 6],
    ['UNKNOWN_TOPIC_OR_PARTITION', 3],
    ['REQUEST_TIMED_OUT', 7],
    ['NOT_ENOUGH_REPLICAS', 19],
    ['CONCURRENT_TRANSACTIONS', 51],
    ['KAFKA_STORAGE_ERROR', 56],
    ['CORRUPT_MESSAGE', 2],
  ])('%s for one of six partitions loses nothing', async (_, refuse) => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    cluster.fault({ api: 'Produce', deed: { refuse, partition: 4 } });
    await sink.commit(messages('2'));
    expect(committed(cluster)).toEqual(each('1', '2'));
    const sent = batchesSent(cluster);
    expect(sent.map(({ length }) => length)).toEqual([2, 2, 2, 2, 3, 2]);
    expect(sent[4]![1]!.equals(sent[4]![2]!)).toBe(true);
    await sink.commit(messages('3'));
    expect(committed(cluster)).toEqual(each('1', '2', '3'));
  });

  it('a leader that moves to another broker is found there', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    for (let partition = 0; partition < PARTITIONS; partition++) cluster.lead(TOPIC, partition, 2);
    await sink.commit(messages('2'));
    for (let partition = 0; partition < PARTITIONS; partition++) cluster.lead(TOPIC, partition, 0);
    await sink.commit(messages('3'));
    expect(committed(cluster)).toEqual(each('1', '2', '3'));
  });

  it('a leader that moves between two batches of a partition is found there', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', first: () => setImmediate(() => cluster.lead(TOPIC, 0, 1)) });
    const large = ['1', '2', '3', '4'].map((digit) => message(0, digit.repeat(500_000)));
    await sink.commit(large);
    expect(cluster.committed(TOPIC, 0).map(({ value }) => value?.[0])).toEqual([...'1234']);
  });

  it('a partition without a leader is waited for', async () => {
    const cluster = await startCluster();
    cluster.lead(TOPIC, 3, -1);
    const sink = await openOn(cluster);
    const done = sink.commit(messages('v'));
    await arrived(cluster, 'Metadata', 3);
    cluster.lead(TOPIC, 3, 0);
    await done;
    expect(committed(cluster)).toEqual(each('v'));
  });

  it('a connection that is lost once it was written writes nothing twice', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: 'hang up after' });
    const ends = await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
    expect(cluster.written(TOPIC, 2).length).toBe(1);
    expect(ends.get(TOPIC)?.get(2)).toBe(2n);
    const [first, again] = batchesSent(cluster)[2] as [Buffer, Buffer];
    expect(again.equals(first)).toBe(true);
  });

  it('a connection that is lost before anything was written loses nothing', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: 'hang up before' });
    await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
  });

  it('a batch that its leader knows already, and no longer where it is, is there', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const DUPLICATE_SEQUENCE_NUMBER = 46;
    cluster.fault({ api: 'Produce', deed: 'hang up after' });
    cluster.fault({ api: 'Produce', deed: { refuse: DUPLICATE_SEQUENCE_NUMBER, partition: 1 } });
    const ends = await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
    expect(ends.has(TOPIC)).toBe(false); // one end is not known
  });

  it('a batch that the answer says nothing of is there once', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: { omit: 3 } });
    const ends = await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
    expect(cluster.written(TOPIC, 3).length).toBe(1);
    expect(ends.get(TOPIC)?.get(3)).toBe(2n);
    expect(batchesSent(cluster).map(({ length }) => length)).toEqual([1, 1, 1, 2, 1, 1]);
    await sink.commit(messages('2')); // in an epoch of its own, so that a late copy of the batch is refused
    expect(cluster.of('InitProducerId').length).toBe(2);
    expect(committed(cluster)).toEqual(each('1', '2'));
  });

  it('a broker that does not answer is asked again by another connection', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster, { answerWithinMs: SHORT_MS });
    cluster.fault({ api: 'Produce', deed: 'lose answer' });
    await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
    const [first, again] = cluster.of('Produce');
    expect(again!.connection).not.toBe(first!.connection);
  });

  it('what is delivered late, after its transaction, is written in no other', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster, { answerWithinMs: SHORT_MS });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Produce', first: () => isOpen });
    await sink.commit(messages('1'));
    await sink.commit([message(0, '2')]);
    open();
    await sink.commit([message(1, '3')]);
    expect(committed(cluster)).toEqual([['1', '2'], ['1', '3'], ['1'], ['1'], ['1'], ['1']]);
    expect(cluster.written(TOPIC, 2).length).toBe(1);
  });

  it.each(['Produce', 'AddPartitionsToTxn'] as const)(
    'after an answer to %s that stayed out the next transaction has an epoch of its own',
    async (api) => {
      const cluster = await startCluster();
      const sink = await openOn(cluster);
      cluster.fault({ api, deed: 'hang up after' });
      await sink.commit(messages('1'));
      const before = cluster.requests.length;
      await sink.commit(messages('2'));
      const next = cluster.requests.slice(before).filter(({ api }) => api !== 'Metadata');
      expect(next.map(({ api }) => api)).toEqual(['EndTxn', 'InitProducerId', ...COMMIT]); // what a newer one has open stays
      const [first] = cluster.of('InitProducerId');
      const [, second] = cluster.of('InitProducerId');
      expect(first!.body.own).toEqual({ producerId: '-1', epoch: -1 });
      expect(second!.body.own).toEqual({ producerId: '1000', epoch: 0 }); // its own: nobody else is fenced by it
      await sink.commit(messages('3'));
      expect(cluster.of('InitProducerId').length).toBe(2);
      expect(committed(cluster)).toEqual(each('1', '2', '3'));
    },
  );

  it('an answer to InitProducerId that stays out fences nobody but the one before', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: 'hang up after' });
    await sink.commit(messages('1'));
    cluster.fault({ api: 'InitProducerId', deed: 'hang up after' });
    await sink.commit(messages('2'));
    expect(committed(cluster)).toEqual(each('1', '2'));
  });
});

describe('the coordinator', () => {
  it.each([
    ['AddPartitionsToTxn', 'CONCURRENT_TRANSACTIONS', 51],
    ['AddPartitionsToTxn', 'COORDINATOR_LOAD_IN_PROGRESS', 14],
    ['AddPartitionsToTxn', 'COORDINATOR_NOT_AVAILABLE', 15],
    ['EndTxn', 'CONCURRENT_TRANSACTIONS', 51],
    ['EndTxn', 'COORDINATOR_LOAD_IN_PROGRESS', 14],
    ['EndTxn', 'NOT_COORDINATOR', 16],
    ['FindCoordinator', 'COORDINATOR_NOT_AVAILABLE', 15],
    ['InitProducerId', 'CONCURRENT_TRANSACTIONS', 51],
  ] as const)('is asked again where %s is answered with %s', async (api, _, refuse) => {
    const cluster = await startCluster();
    cluster.fault({ api, times: 2, deed: { refuse } });
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
    await sink.commit(messages('2'));
    expect(committed(cluster)).toEqual(each('1', '2'));
  });

  it('is found where it has moved to', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    cluster.coordinator = 2;
    await sink.commit(messages('2'));
    cluster.fault({ api: 'EndTxn', first: () => (cluster.coordinator = 1) });
    await sink.commit(messages('3'));
    expect(committed(cluster)).toEqual(each('1', '2', '3'));
    expect(cluster.of('EndTxn').map(({ broker }) => broker)).toEqual([0, 2, 2, 1]);
  });

  it('adds partitions again where it has added others only', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const refuse = UNKNOWN_TOPIC_OR_PARTITION; // it has not heard of it yet
    cluster.fault({ api: 'AddPartitionsToTxn', times: 2, deed: { refuse, partition: 5 } });
    await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
  });

  it('may know less of a topic than nobody tells just then', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const deed = { refuse: UNKNOWN_TOPIC_OR_PARTITION, partition: 5 };
    const first = () => cluster.fault({ api: 'Metadata', deed: 'hang up before' });
    cluster.fault({ api: 'AddPartitionsToTxn', first, deed });
    await sink.commit(messages('1'));
    expect(committed(cluster)).toEqual(each('1'));
  });
});

describe('a login that has run out', () => {
  it('is replaced by a connection, never among calls', async () => {
    const cluster = await startCluster({ loginMs: 300 });
    const sink = await openOn(cluster, {
      sasl: { mechanism: 'plain', username: 'u', password: 'p' },
    });
    let count = 0;
    while (cluster.of('SaslAuthenticate').length < 4) {
      await sink.commit([message(0, String(count++))]);
    }
    const logins = cluster.of('SaslAuthenticate').map(({ connection }) => connection);
    expect(new Set(logins).size).toBe(logins.length);
    const all = cluster.committed(TOPIC, 0).map(({ value }) => value);
    expect(all).toEqual(Array.from({ length: count }, (_, n) => String(n)));
    expect(cluster.of('InitProducerId').length).toBe(1);
  });
});

it('a commit tells nothing but what it is about', async () => {
  const cluster = await startCluster();
  const sink = await openOn(cluster);
  cluster.fault({ api: 'Produce', deed: { refuse: 6, partition: 0 } });
  await sink.commit(messages('1'));
  expect(told(cluster)).toEqual([
    'InitProducerId',
    'AddPartitionsToTxn',
    'Produce',
    'Produce',
    'EndTxn',
  ]);
});

import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { describeError, isRetryable } from '../../../src/core/errors.ts';
import {
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
} from './on-scripted-cluster.ts';

checkServers();

type Cluster = Awaited<ReturnType<typeof startCluster>>;
const outcomes = (cluster: Cluster) => cluster.of('EndTxn').map(({ body }) => body.outcome);

describe('a transaction that can not be committed', () => {
  it.each([10, 18])('is for somebody to mend where a batch is too large: %i', async (refuse) => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: { refuse, partition: 2 } });
    await expect(sink.commit(messages('1'))).rejects.toMatchObject({ code: 'TOPIC_SETTINGS' });
    expect(outcomes(cluster)).toEqual(['abort']);
  });

  it.each([
    ['OUT_OF_ORDER_SEQUENCE_NUMBER', 45, 'COMMIT_FAILED', false],
    ['UNKNOWN_PRODUCER_ID', 59, 'COMMIT_FAILED', false],
    ['INVALID_TXN_STATE', 48, 'COMMIT_FAILED', false],
    ['TRANSACTION_ABORTABLE', 120, 'COMMIT_FAILED', false],
    ['an error of no name', 999, 'COMMIT_FAILED', false],
    ['INVALID_PRODUCER_ID_MAPPING', 49, 'COMMIT_FAILED', true],
    ['INVALID_PRODUCER_EPOCH', 47, 'FENCED', true],
    ['PRODUCER_FENCED', 90, 'FENCED', true],
  ])('is aborted at once: %s', async (_, refuse, code, epoch) => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    cluster.fault({ api: 'Produce', deed: { refuse, partition: 2 } });
    await expect(sink.commit(messages('2'))).rejects.toMatchObject({ code, context: { epoch } });
    expect(outcomes(cluster)).toEqual(['commit', 'abort']);
    expect(cluster.of('Produce').length).toBe(2);
    expect(committed(cluster)).toEqual(each('1'));
    await expect(sink.commit(messages('3'))).rejects.toThrow(/open another one/);
  });

  it('is aborted after a minute in which no response has one of the partitions', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const now = performance.now();
    onTestFinished(() => void vi.restoreAllMocks());
    const later = () => void vi.spyOn(performance, 'now').mockReturnValue(now + 61_000);
    cluster.fault({ api: 'Produce', deed: { omit: 3 } });
    cluster.fault({ api: 'Produce', deed: { omit: 3 }, first: later });
    const failure = await sink.commit(messages('1')).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'COMMIT_FAILED' });
    expect(describeError(failure)).toContain('lacks partition 3 of orders');
    expect(outcomes(cluster)).toEqual(['abort']);
    expect(committed(cluster)).toEqual(each());
  });

  it('is not aborted before every leader has answered: what was sent goes on behind no abort', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const sink = await openOn(cluster);
    const { isOpen, open } = gate();
    const OUT_OF_ORDER_SEQUENCE_NUMBER = 45;
    cluster.fault({ api: 'Produce', when: ({ broker }) => broker === 1, first: () => isOpen });
    cluster.fault({ api: 'Produce', deed: { refuse: OUT_OF_ORDER_SEQUENCE_NUMBER } });
    const done = sink.commit(messages('1')).catch((error: unknown) => error);
    await arrived(cluster, 'Produce', 2);
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
    expect(outcomes(cluster)).toEqual([]);
    open();
    expect(await done).toMatchObject({ code: 'COMMIT_FAILED' });
    expect(outcomes(cluster)).toEqual(['abort']);
  });

  it('is fenced by the next one of its id, and leaves nothing behind', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    const next = await openOn(cluster);
    const failure = await sink.commit(messages('2')).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: 'FENCED', context: { epoch: true } });
    expect(isRetryable(failure)).toBe(false);
    await next.commit(messages('3'));
    expect(committed(cluster)).toEqual(each('1', '3'));
  });

  it.each(['its clock', 'the clock of the machine'] as const)(
    'may have run out of time: after half a minute by %s nobody says that it was fenced',
    async (which) => {
      const cluster = await startCluster();
      const sink = await openOn(cluster);
      const [clock, now] =
        which === 'its clock' ? [performance, performance.now()] : [Date, Date.now()];
      const first = () => void vi.spyOn(clock, 'now').mockReturnValue(now + 31_000);
      onTestFinished(() => void vi.restoreAllMocks());
      cluster.fault({ api: 'Produce', deed: { refuse: 47, partition: 2 }, first });
      const failure = await sink.commit(messages('1')).catch((error: unknown) => error);
      expect(failure).toMatchObject({ code: 'COMMIT_FAILED', context: { epoch: true } });
      expect(describeError(failure)).toMatch(
        /has opened the transactional id, or the transaction timed out/,
      );
    },
  );

  it('is fenced in its midst, and leaves nothing behind', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const sink = await openOn(cluster);
    cluster.fault({
      api: 'Produce',
      when: ({ broker }) => broker === 1,
      first: () => openOn(cluster),
    });
    await expect(sink.commit(messages('1'))).rejects.toMatchObject({ context: { epoch: true } });
    expect(committed(cluster)).toEqual(each());
  });

  it('after doubt, another one of its id fences it: it does not fence the other', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'Produce', deed: 'hang up after' });
    await sink.commit(messages('1'));
    const next = await openOn(cluster);
    await expect(sink.commit(messages('2'))).rejects.toMatchObject({ context: { epoch: true } });
    await next.commit(messages('3'));
    expect(committed(cluster)).toEqual(each('1', '3'));
  });
});

describe('EndTxn', () => {
  it.each(['lose request', 'lose answer', 'hang up before', 'hang up after'] as const)(
    'is said once: the outcome is unknown after "%s"',
    async (deed) => {
      const cluster = await startCluster();
      const isLost = deed.startsWith('lose');
      const sink = await openOn(cluster, isLost ? { answerWithinMs: SHORT_MS } : {});
      cluster.fault({ api: 'EndTxn', deed });
      await expect(sink.commit(messages('1'))).rejects.toMatchObject({
        code: 'COMMIT_FAILED',
        context: { epoch: false },
      });
      expect(outcomes(cluster)).toEqual(['commit']);
      const isThere = deed.endsWith('answer') || deed.endsWith('after');
      expect(committed(cluster)).toEqual(isThere ? each('1') : each());
      const next = await openOn(cluster); // what was left open is over now
      await next.commit(messages('2'));
      expect(committed(cluster)).toEqual(isThere ? each('1', '2') : each('2'));
    },
  );

  it('of a producer that was fenced meanwhile commits nothing', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api: 'EndTxn', first: () => openOn(cluster) });
    await expect(sink.commit(messages('1'))).rejects.toMatchObject({ context: { epoch: true } });
    expect(outcomes(cluster)).toEqual(['commit']);
    expect(committed(cluster)).toEqual(each());
  });
});

describe('a topic that is another one', () => {
  it.each([4, 7, 12])('with %i partitions in place of six gets nothing', async (count) => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.partitions.set(TOPIC, count);
    const error = await sink.commit(messages('1')).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'TOPIC_CHANGED', context: { topic: TOPIC } });
    expect(describeError(error)).toContain(`${TOPIC} has ${count} partitions and not 6 as before`);
    expect(cluster.of('Produce')).toEqual([]);
    expect(committed(cluster)).toEqual(each());
  });

  it('is noticed where leaders are looked for', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    cluster.partitions.set(TOPIC, 7);
    cluster.fault({ api: 'Produce', deed: { refuse: 6, partition: 0 } });
    await expect(sink.commit(messages('2'))).rejects.toMatchObject({ code: 'TOPIC_CHANGED' });
    expect(outcomes(cluster)).toEqual(['commit', 'abort']);
    expect(committed(cluster)).toEqual(each('1'));
  });

  it('is waited for while it is just being made', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.partitions.delete(TOPIC);
    const done = sink.commit(messages('1'));
    await arrived(cluster, 'Metadata', 2);
    cluster.partitions.set(TOPIC, 6);
    await done;
    expect(committed(cluster)).toEqual(each('1'));
  });
});

describe('what a user may not do', () => {
  const TOPIC_AUTHORIZATION_FAILED = 29;
  const CLUSTER_AUTHORIZATION_FAILED = 31;
  const TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53;

  it.each([
    ['Metadata', TOPIC_AUTHORIZATION_FAILED, /ACLs .* the topics/],
    ['AddPartitionsToTxn', TOPIC_AUTHORIZATION_FAILED, /ACLs .* the topics/],
    ['AddPartitionsToTxn', TRANSACTIONAL_ID_AUTHORIZATION_FAILED, /transactional id/],
    ['Produce', TOPIC_AUTHORIZATION_FAILED, /ACLs .* the topics/],
    ['Produce', CLUSTER_AUTHORIZATION_FAILED, /ACLs .* cluster/],
    ['EndTxn', TRANSACTIONAL_ID_AUTHORIZATION_FAILED, /transactional id/],
  ] as const)('is said in one line: %s, error %i', async (api, refuse, line) => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    cluster.fault({ api, times: 2, deed: { refuse } });
    const error = await sink.commit([message(0)]).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'KAFKA_REFUSED' });
    expect(describeError(error)).toMatch(line);
    expect(cluster.of(api).length).toBeLessThanOrEqual(2);
    expect(committed(cluster)).toEqual(each());
  });

  it.each(['FindCoordinator', 'InitProducerId'] as const)(
    'is said when it is opened: %s',
    async (api) => {
      const cluster = await startCluster();
      cluster.fault({ api, deed: { refuse: TRANSACTIONAL_ID_AUTHORIZATION_FAILED } });
      await expect(openOn(cluster)).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
      expect(cluster.of(api).length).toBe(1);
    },
  );
});

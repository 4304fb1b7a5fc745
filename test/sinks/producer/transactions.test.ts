import { randomBytes } from 'node:crypto';
import { describe, expect, it, vi } from 'vitest';
import type { Message } from '../../../src/sinks/sink.ts';
import {
  TOPIC,
  arrived,
  checkServers,
  committed,
  each,
  gate,
  keyOf,
  message,
  messages,
  openOn,
  startCluster,
  told,
} from './on-scripted-cluster.ts';

checkServers();

const COMMIT = ['AddPartitionsToTxn', 'Produce', 'EndTxn'];

describe('openKafkaProducer, while nothing is wrong', () => {
  it('adds all partitions, produces, and commits, with one request each', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    for (const value of ['1', '2', '3']) await sink.commit(messages(value));
    expect(told(cluster)).toEqual(['InitProducerId', ...COMMIT, ...COMMIT, ...COMMIT]);
    expect(committed(cluster)).toEqual(each('1', '2', '3'));
  });

  it('says where each partition ends, behind the marker', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    for (let n = 1; n < 4; n++) {
      const ends = await sink.commit([message(3), message(3), message(5)]);
      expect(ends).toEqual(
        new Map([
          [
            TOPIC,
            new Map([
              [3, BigInt(3 * n)],
              [5, BigInt(2 * n)],
            ]),
          ],
        ]),
      );
      expect([cluster.end(TOPIC, 3), cluster.end(TOPIC, 5)]).toEqual([3 * n, 2 * n]);
    }
  });

  it('waits for readers no longer than a broker before Kafka 3.0 can say', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    await sink.commit(messages('1'));
    await sink.awaitVisible();
    expect(told(cluster)).toEqual(['InitProducerId', ...COMMIT]); // it has no DescribeTransactions
  });

  it('commits nothing without messages', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    expect(await sink.commit([])).toEqual(new Map());
    expect(told(cluster)).toEqual(['InitProducerId']);
  });

  it('keeps keys, headers, tombstones, and messages without a key', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const headers = { ce_id: '1', größe: 'é🍷' };
    const keyless: Message = { topic: TOPIC, key: null, value: Buffer.from('keyless') };
    await sink.commit([keyless, { ...message(2), headers }, message(2, null)]);
    const key = keyOf(2);
    expect(cluster.committed(TOPIC, 0)).toMatchObject([{ key: null, value: 'keyless' }]);
    expect(cluster.committed(TOPIC, 2)).toEqual([
      { offset: 0, key, value: 'v', headers },
      { offset: 1, key, value: null, headers: {} },
    ]);
  });

  it('sends what is too much for a batch in several, one after the other, in order', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    // Random: what could be compressed would fit.
    const large = Array.from(
      { length: 7 },
      (_, n) => `${n} ${randomBytes(200_000).toString('hex')}`,
    );
    const all = large.map((value) => message(1, value));
    const ends = await sink.commit(all);
    expect(cluster.committed(TOPIC, 1).map(({ value }) => value?.[0])).toEqual([...'0123456']);
    expect(cluster.of('Produce').length).toBe(4);
    expect(ends.get(TOPIC)?.get(1)).toBe(8n);
  });

  it('adds partitions before anything is produced', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const { isOpen, open } = gate();
    cluster.fault({ api: 'AddPartitionsToTxn', first: () => isOpen });
    const done = sink.commit(messages('v'));
    await arrived(cluster, 'AddPartitionsToTxn', 1);
    for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
    expect(cluster.of('Produce')).toEqual([]);
    open();
    await done;
    const [add] = cluster.of('AddPartitionsToTxn');
    expect(add!.body.topics[0]!.partitions.toSorted()).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('sends to leaders side by side: none waits for another', async () => {
    const cluster = await startCluster({ brokers: 3 });
    const sink = await openOn(cluster);
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Produce', times: 3, first: () => isOpen });
    const done = sink.commit(messages('v'));
    await arrived(cluster, 'Produce', 3);
    expect(new Set(cluster.of('Produce').map(({ broker }) => broker))).toEqual(new Set([0, 1, 2]));
    open();
    await done;
    expect(committed(cluster)).toEqual(each('v'));
  });

  it('stamps messages with the time at which they are sent', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const before = Date.now();
    await sink.commit([message(0)]);
    const { batch } = cluster.of('Produce')[0]!.body.topics[0]!.partitions[0]!;
    for (const at of [27, 35]) {
      expect(Number(batch.readBigInt64BE(at))).toBeGreaterThanOrEqual(before);
      expect(Number(batch.readBigInt64BE(at))).toBeLessThanOrEqual(Date.now());
    }
  });

  it('has later timestamps in each commit, also when the clock is set back a little', async () => {
    const cluster = await startCluster();
    const sink = await openOn(cluster);
    const clock = vi.spyOn(Date, 'now').mockReturnValue(2_000_000);
    await sink.commit([message(0), { ...message(1), timestampOffset: 1 }]);
    clock.mockReturnValue(1_999_500);
    await sink.commit([message(0)]);
    clock.mockReturnValue(1_000_000); // so far back that the timestamps follow
    await sink.commit([message(0)]);
    clock.mockRestore();
    const newest = cluster
      .of('Produce')
      .flatMap(({ body }) =>
        body.topics.flatMap(({ partitions }) =>
          partitions.map(({ batch }) => Number(batch.readBigInt64BE(35))),
        ),
      );
    expect(newest.toSorted((a, b) => a - b)).toEqual([1_000_000, 2_000_000, 2_000_001, 2_000_002]);
  });
});

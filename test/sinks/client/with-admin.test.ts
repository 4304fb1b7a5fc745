import { createRequire } from 'node:module';
import kafkajs, { KafkaJSProtocolError } from 'kafkajs';
import type { Admin } from 'kafkajs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { withAdmin } from '../../../src/sinks/client/with-admin.ts';

/** kafkajs' own, of which every admin is. */
const Cluster = createRequire(import.meta.url)('kafkajs/src/cluster') as {
  readonly prototype: { metadata: () => Promise<unknown> };
};

/** A cluster that counts connections. */
function cluster() {
  const counts = { opened: 0, closed: 0 };
  const admin: Partial<Admin> = {
    connect: () => Promise.resolve(void counts.opened++),
    disconnect: () => Promise.resolve(void counts.closed++),
  };
  return { counts, kafka: { admin: () => admin as Admin } };
}

/** Says these, one a time, and then that it is done. */
function says(types: readonly string[]): () => Promise<string> {
  const left = [...types];
  return () => {
    const type = left.shift();
    if (type === undefined) return Promise.resolve('done');
    return Promise.reject(Object.assign(new KafkaJSProtocolError(new Error('refused')), { type }));
  };
}

describe('work with an admin connection', () => {
  it('is begun again, with a connection that knows no leaders, while they are not settled', async () => {
    const { counts, kafka } = cluster();
    const work = says([
      'UNKNOWN_TOPIC_OR_PARTITION',
      'LEADER_NOT_AVAILABLE',
      'NOT_LEADER_FOR_PARTITION',
    ]);
    expect(await withAdmin(kafka, work)).toBe('done');
    expect(counts).toEqual({ opened: 4, closed: 4 });
  });

  it('is begun again where kafkajs has itself retried in vain', async () => {
    const { counts, kafka } = cluster();
    const [inVain, done] = [says(['UNKNOWN_TOPIC_OR_PARTITION']), says([])];
    const work = () =>
      counts.opened > 1
        ? done()
        : inVain().catch((error: Error) => {
            throw new kafkajs.KafkaJSNumberOfRetriesExceeded(error, {
              retryCount: 2,
              retryTime: 114,
            });
          });
    expect(await withAdmin(kafka, work)).toBe('done');
    expect(counts).toEqual({ opened: 2, closed: 2 });
  });

  it('finds Kafka away where all brokers go as they are asked for metadata, over which kafkajs trips', async () => {
    const { kafka } = cluster();
    const admin = new kafkajs.Kafka({ brokers: ['127.0.0.1:1'], logLevel: 0 }).admin();
    // What its cluster gives when each broker has failed.
    const metadata = vi.spyOn(Cluster.prototype, 'metadata').mockResolvedValue(null);
    onTestFinished(() => metadata.mockRestore());
    for (const asked of [
      () => admin.fetchTopicMetadata({ topics: ['wine.orders'] }),
      () => admin.listTopics(),
      () => admin.describeCluster(),
    ]) {
      await expect(withAdmin<unknown>(kafka, asked)).rejects.toMatchObject({
        code: 'KAFKA_UNREACHABLE',
      });
    }
    expect(metadata).toHaveBeenCalledTimes(3);
  });

  it('ends with anything else that the broker says, its connection closed', async () => {
    const { counts, kafka } = cluster();
    const work = says(['BROKER_NOT_AVAILABLE']);
    await expect(withAdmin(kafka, work)).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    expect(counts).toEqual({ opened: 1, closed: 1 });
  });
});

import { describe, expect, it } from 'vitest';
import { readTail } from '../../../src/kafka/fetch/kafka-tail.ts';
import {
  checkServers,
  kafkaOf,
  startCluster,
  TOPIC,
} from '../../sinks/producer/on-scripted-cluster.ts';

checkServers();

describe('a topic that is read back', () => {
  it('may be made anew meanwhile: a later try finds out, nobody has to mend it', async () => {
    const cluster = await startCluster(); // with nothing in it
    const read = readTail({
      kafka: kafkaOf(cluster),
      topic: TOPIC,
      from: new Map([[0, 10n]]),
      to: new Map([[0, 20n]]),
      onMessages: () => Promise.resolve(),
    });
    await expect(read).rejects.toMatchObject({
      code: 'KAFKA_UNREACHABLE',
      message: expect.stringMatching(/^topic orders was deleted, recreated or truncated/) as string,
      cause: { code: 'POSITION' },
    });
  });
});

import { Kafka } from 'kafkajs';
import { expect, it } from 'vitest';
import { topicBounds } from '../../../src/kafka/client/topic-facts.ts';

it('says within some seconds that no broker answers', async () => {
  const kafka = new Kafka({ brokers: ['127.0.0.1:1'], logLevel: 0, retry: { retries: 0 } });
  const began = performance.now();
  await expect(topicBounds({ kafka }, 'orders')).rejects.toMatchObject({
    code: 'KAFKA_UNREACHABLE',
    message: expect.stringContaining('check KAFKA_BROKERS') as string,
  });
  expect(performance.now() - began).toBeLessThan(8_000);
});

import { describe, expect, it } from 'vitest';
import { readTail } from '../../../src/sinks/fetch/kafka-tail.ts';
import { fakeKafka } from '../../support/fake-kafka.ts';

const OUT_OF_RANGE = 1;

describe('a topic that is read back', () => {
  it('may be made anew meanwhile: a later try finds out, nobody has to mend it', async () => {
    const fake = fakeKafka();
    fake.bounds.set(0, [0, 3]);
    const read = readTail({
      kafka: fake.kafka,
      topic: 'wine.orders',
      from: new Map([[0, 10n]]),
      to: new Map([[0, 20n]]),
      onMessages: () => Promise.resolve(),
    });
    (await fake.nextFetch()).answer({ partition: 0, errorCode: OUT_OF_RANGE });
    await expect(read).rejects.toMatchObject({
      code: 'KAFKA_UNREACHABLE',
      message: expect.stringMatching(/^wine\.orders was deleted, made anew or truncated/) as string,
      cause: { code: 'POSITION' },
    });
  });
});

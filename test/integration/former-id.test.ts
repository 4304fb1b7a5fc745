import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import { asyncScheduler } from 'rxjs';
import { expect, inject, it, onTestFinished } from 'vitest';
import { kafkaTransactionalLog } from '../../src/sinks/client/open-kafka.ts';
import { isEpochError } from '../../src/sinks/client/kafka-error.ts';
import { readTail } from '../../src/sinks/fetch/kafka-tail.ts';
import { openCheckpoint } from '../../src/pipeline/checkpoint/checkpoint.ts';
import type { Checkpoint } from '../../src/pipeline/checkpoint/checkpoint.ts';
import type { Ownership } from '../../src/pipeline/checkpoint/ownership.ts';
import { transactionalIds } from '../../src/pipeline/transactional-id.ts';
import { SimFolder, storeOf } from '../sim/sim-store.ts';
import { createTopic } from './support/created-topic.ts';

const image = { schemaId: 1, bytes: Buffer.from('image') };

/** The orders of an account: processes of this version and of older ones, and what they have published. */
async function ordersOf(kafka: Kafka, prefix: string, account: string) {
  const [topic, cursorTopic] = [`${prefix}.orders`, `${prefix}.cursors`];
  for (const name of [topic, cursorTopic])
    await createTopic(kafka, { topic: name, numPartitions: 1 });
  const broker = kafkaTransactionalLog(
    { kafka },
    {
      partitions: new Map([topic, cursorTopic].map((name) => [name, 1])),
    },
  );
  const { transactionalId, formerId } = transactionalIds(prefix, account, 'orders');
  const process = (instance: string, version: 'old' | 'new') => {
    const ownership: Ownership = {};
    const store = storeOf(new SimFolder(), () => Promise.resolve()).task('orders');
    return async () => {
      const log = await openCheckpoint({
        log: broker,
        store,
        place: {
          task: `${account}/orders`,
          topic,
          cursorTopic,
          ...(version === 'old'
            ? { transactionalId: formerId! }
            : { transactionalId, formerId: formerId! }),
        },
        instance,
        readImage: (event) => Promise.resolve({ sequence: Number(event.toString()), image }),
        ownership,
        canBeAsked: true,
        scheduler: asyncScheduler,
      });
      onTestFinished(() => log.close());
      return log;
    };
  };
  const publish = async ({ commit, cursor }: Checkpoint) => {
    const sequence = cursor.sequence + 1;
    const value = Buffer.from(String(sequence));
    await commit({
      messages: [{ topic, key: String(sequence), value }],
      images: [{ key: String(sequence), sequence, image }],
      cursor: { ...cursor, sequence },
    });
  };
  const published = async () => {
    const found: number[] = [];
    const onMessages = (messages: readonly { readonly value: Buffer | null }[]) => {
      found.push(...messages.map(({ value }) => Number(value!.toString())));
      return Promise.resolve();
    };
    await readTail({ kafka, topic, from: new Map(), to: await broker.ends(topic), onMessages });
    return found;
  };
  return { process, publish, published };
}

it('accounts whose ids were one no longer fence each other, and a process of an older version is fenced by an upgrade', async () => {
  const kafka = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
  const name = `former-${randomUUID()}`;
  const one = await ordersOf(kafka, name, 'eu.main');
  const other = await ordersOf(kafka, `${name}.eu`, 'main');

  const running = one.process('old', 'old');
  const old = await running();
  await one.publish(old);
  const log = await one.process('new', 'new')();
  const late = await one.publish(old).catch((error: unknown) => error);
  expect(isEpochError(late)).toBe(true);
  await expect(running()).rejects.toMatchObject({ code: 'FENCED' });
  await one.publish(log);

  // The other one is still of the older version: it has that id for itself now.
  const theirs = await other.process('theirs', 'old')();
  await other.publish(theirs);
  await one.publish(log);
  const restarted = await one.process('restarted', 'new')();
  await other.publish(theirs);
  await one.publish(restarted);
  const upgraded = await other.process('upgraded', 'new')();
  expect(isEpochError(await other.publish(theirs).catch((error: unknown) => error))).toBe(true);
  await other.publish(upgraded);
  await one.publish(restarted);
  expect([await one.published(), await other.published()]).toEqual([
    [1, 2, 3, 4, 5],
    [1, 2, 3],
  ]);
});

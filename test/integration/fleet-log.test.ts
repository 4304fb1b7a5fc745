import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { steadyScheduler } from '../../src/core/clock.ts';
import { fleetLog } from '../../src/fleet/fleet-log.ts';
import type { FleetLog } from '../../src/fleet/fleet-log.ts';
import { fleetMessage } from '../../src/fleet/fleet-record.ts';
import { KafkaProxy } from '../support/proxy/kafka-proxy.ts';
import { createTopic } from './support/created-topic.ts';

const TOPIC = 'fleet-log.fleet';
/** kafkajs gives up what is not answered after thirty seconds. */
const SOON = { timeout: 15_000 };

/** The topic as an instance reads it; `reopen` begins to read anew, as after an error. */
function logOf(
  broker: string,
): FleetLog & { readonly retries: readonly unknown[]; readonly reopen: () => void } {
  const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING });
  const retries: unknown[] = [];
  const log = fleetLog({
    ...{ kafka, topic: TOPIC, scheduler: steadyScheduler },
    onRetry: ({ error }) => retries.push(error),
  });
  let following = log.following$.subscribe();
  onTestFinished(() => {
    following.unsubscribe();
    log.close();
  });
  const reopen = () => {
    following.unsubscribe();
    following = log.following$.subscribe();
  };
  return { ...log, retries, reopen };
}

const says = (account: string) =>
  fleetMessage(TOPIC, {
    ...{ type: 'released', account, instance: 'i', name: 'one' },
    at: '2026-01-31T12:00:00.000Z',
  });

describe("the fleet's topic", () => {
  it(
    'is read on, soon, where the connection that read it is dead without a sign',
    SOON,
    async () => {
      const [broker] = inject('brokers') as [string];
      await createTopic(new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING }), {
        topic: TOPIC,
      });
      const proxy = await KafkaProxy.listen(broker);
      onTestFinished(() => proxy.close());
      const [near, far] = [logOf(broker), logOf(proxy.address)];
      await near.send(says('before'));
      await far.catchUp();
      expect(far.accounts.has('before')).toBe(true);
      expect(far.retries).toEqual([]);

      proxy.tcp.darken();
      await near.send(says('behind'));
      await far.catchUp();
      expect(far.accounts.has('behind')).toBe(true);
      expect(far.retries).toHaveLength(1);
    },
  );

  it('is not taken for a new one while a transaction is open in it', SOON, async () => {
    const [broker] = inject('brokers') as [string];
    const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING });
    await createTopic(kafka, { topic: TOPIC });
    const log = logOf(broker);
    await log.send(says('before'));
    const producer = kafka.producer({ transactionalId: 'fleet-log.open', idempotent: true });
    await producer.connect();
    onTestFinished(() => producer.disconnect());
    const transaction = await producer.transaction();
    await transaction.send({ topic: TOPIC, messages: [says('open')] });
    await vi.waitFor(() => expect(log.accounts.has('open')).toBe(true), SOON);

    const cleared = vi.spyOn(log.accounts as Map<string, unknown>, 'clear');
    log.reopen();
    await transaction.send({ topic: TOPIC, messages: [says('behind')] });
    await log.catchUp();
    expect(log.accounts.has('behind')).toBe(true);
    expect(cleared).not.toHaveBeenCalled();
    await transaction.abort();
  });
});

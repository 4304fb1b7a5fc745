import { expect, it, onTestFinished } from 'vitest';
import { PlainProducer } from '../../../src/sinks/producer/plain-producer.ts';
import type { ScriptedCluster } from '../../support/scripted-cluster.ts';
import {
  SHORT_MS,
  TOPIC,
  arrived,
  checkServers,
  gate,
  kafkaOf,
  message,
  startCluster,
  told,
} from './on-scripted-cluster.ts';

checkServers();

function plainOn(cluster: ScriptedCluster, answerWithinMs?: number) {
  const producer = new PlainProducer(kafkaOf(cluster), answerWithinMs);
  onTestFinished(() => producer.close());
  return producer;
}
const valuesOf = (cluster: ScriptedCluster, partition = 3) =>
  cluster.committed(TOPIC, partition).map(({ value }) => value);

it('connects to nothing before there is something to send', async () => {
  const cluster = await startCluster();
  plainOn(cluster);
  for (let turn = 0; turn < 50; turn++) await new Promise(setImmediate);
  expect(cluster.requests).toEqual([]);
});

it('sends one after the other, in order, without a transaction', async () => {
  const cluster = await startCluster();
  const producer = plainOn(cluster);
  const values = ['1', '2', '3', '4'];
  await Promise.all(values.map((value) => producer.send(TOPIC, message(3, value))));
  expect(valuesOf(cluster)).toEqual(values);
  expect(told(cluster)).toEqual(['InitProducerId', 'Produce', 'Produce', 'Produce', 'Produce']);
});

it.each([
  ['an answer that is lost once it was written', 'lose answer'],
  ['a connection that is lost once it was written', 'hang up after'],
  ['a connection that is lost before', 'hang up before'],
  ['a leader that is none any more', { refuse: 6 }],
  ['replicas that are late', { refuse: 7 }],
] as const)('%s: the message is there once', async (_, deed) => {
  const cluster = await startCluster();
  const producer = plainOn(cluster, SHORT_MS);
  await producer.send(TOPIC, message(3, '1'));
  cluster.fault({ api: 'Produce', deed });
  await producer.send(TOPIC, message(3, '2'));
  await producer.send(TOPIC, message(3, '3'));
  expect(valuesOf(cluster)).toEqual(['1', '2', '3']);
});

it('a message that is too large fails alone: those behind it go on', async () => {
  const cluster = await startCluster();
  const producer = plainOn(cluster);
  const MESSAGE_TOO_LARGE = 10;
  await producer.send(TOPIC, message(3, '1'));
  cluster.fault({ api: 'Produce', deed: { refuse: MESSAGE_TOO_LARGE } });
  const failing = producer.send(TOPIC, message(3, '2'));
  const next = producer.send(TOPIC, message(3, '3'));
  await expect(failing).rejects.toMatchObject({
    code: 'TOPIC_SETTINGS',
    cause: { type: 'MESSAGE_TOO_LARGE' },
  });
  await next;
  expect(valuesOf(cluster)).toEqual(['1', '3']);
});

it('rights that are missing are no matter of time', async () => {
  const cluster = await startCluster();
  const producer = plainOn(cluster);
  const TOPIC_AUTHORIZATION_FAILED = 29;
  cluster.fault({ api: 'Produce', deed: { refuse: TOPIC_AUTHORIZATION_FAILED } });
  await expect(producer.send(TOPIC, message(3))).rejects.toMatchObject({ code: 'KAFKA_REFUSED' });
  expect(cluster.of('Produce').length).toBe(1);
});

it('an identity is asked for until there is one', async () => {
  const cluster = await startCluster();
  const producer = plainOn(cluster);
  const COORDINATOR_NOT_AVAILABLE = 15;
  cluster.fault({ api: 'InitProducerId', times: 2, deed: { refuse: COORDINATOR_NOT_AVAILABLE } });
  await producer.send(TOPIC, message(3, '1'));
  expect(valuesOf(cluster)).toEqual(['1']);
});

it('close fails what is under way, and what waits', async () => {
  const cluster = await startCluster();
  const producer = plainOn(cluster);
  const { isOpen, open } = gate();
  cluster.fault({ api: 'Produce', first: () => isOpen });
  const sent = ['1', '2'].map((value) => producer.send(TOPIC, message(3, value)));
  const outcomes = Promise.allSettled(sent);
  await arrived(cluster, 'Produce', 1);
  producer.close();
  expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  open();
});

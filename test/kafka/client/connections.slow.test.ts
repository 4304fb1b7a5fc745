import { setTimeout as pause } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Connections } from '../../../src/kafka/client/connections.ts';
import { CallUnanswered, CallNotSent } from '../../../src/kafka/client/protocol.ts';
import { metadata } from '../../../src/kafka/client/topic-calls.ts';
import type { ScriptedCluster } from '../../support/scripted-cluster.ts';
import {
  TOPIC,
  arrived,
  checkServers,
  gate,
  kafkaOf,
  startCluster,
} from '../../sinks/producer/on-scripted-cluster.ts';

checkServers();

const WITHIN_MS = 10_000;
const MOST = 6;
const LOGIN = { sasl: { mechanism: 'plain', username: 'u', password: 'p' } } as const;

function sharedOn(
  cluster: ScriptedCluster,
  options: { perBroker?: number; idleMs?: number } & Parameters<typeof kafkaOf>[1] = {},
): Connections {
  const { perBroker = MOST, idleMs, ...config } = options;
  const connections = new Connections(kafkaOf(cluster, config), perBroker, idleMs);
  onTestFinished(() => connections.close());
  return connections;
}

/** Asks a broker for the partitions of the topic. */
function ask(
  cluster: ScriptedCluster,
  connections: Connections,
  { broker = 0, withinMs = WITHIN_MS, signal = new AbortController().signal } = {},
) {
  const asked = connections.send(cluster.addresses[broker]!, metadata([TOPIC]), {
    withinMs,
    signal,
  });
  return asked.then(({ topics }) => topics[0]!.partitions.length);
}

const failure = (work: Promise<unknown>) => work.catch((error: unknown) => error);
const all = (count: number, work: () => Promise<number>) =>
  Promise.all(Array.from({ length: count }, work));
/** By connection, how many requests came on it. */
function byConnection(cluster: ScriptedCluster): number[] {
  const counts = new Map<number, number>();
  for (const { connection } of cluster.of('Metadata'))
    counts.set(connection, (counts.get(connection) ?? 0) + 1);
  return [...counts.values()];
}
const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
const until = async (isDone: () => boolean) => {
  const limit = performance.now() + 2_000;
  while (!isDone() && performance.now() < limit) await new Promise(setImmediate);
  expect(isDone()).toBe(true);
};
const turns = async () => {
  for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
};

describe('connectionsOf', () => {
  it('spreads what is asked at once over as many connections as there may be, each made once', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster);
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', times: 60, first: () => isOpen });
    const asked = all(60, () => ask(cluster, connections));
    await arrived(cluster, 'Metadata', MOST);
    await turns();
    expect(cluster.open).toBe(MOST);
    open();
    expect(await asked).toEqual(Array.from({ length: 60 }, () => 6));
    expect(byConnection(cluster)).toEqual(Array.from({ length: MOST }, () => 10));
    expect(cluster.of('ApiVersions').length).toBe(MOST);
  });

  it('sends each call where the least is under way: one that takes long holds up no other', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 2 });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', first: () => isOpen });
    const slow = ask(cluster, connections);
    await arrived(cluster, 'Metadata', 1);
    for (let n = 0; n < 5; n++) await ask(cluster, connections);
    expect(byConnection(cluster)).toEqual([1, 5]);
    open();
    await slow;
  });

  it('has one connection where one call comes after the other', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const connections = sharedOn(cluster);
    for (let n = 0; n < 20; n++) await ask(cluster, connections, { broker: n % 2 });
    expect(byConnection(cluster)).toEqual([10, 10]);
    expect(cluster.open).toBe(2);
  });

  it('closes a connection that nobody has used for a while, and has no timer then', async () => {
    const cluster = await startCluster();
    const before = timers();
    const connections = sharedOn(cluster, { idleMs: 200 });
    await all(10, () => ask(cluster, connections));
    expect(cluster.open).toBe(MOST);
    const began = performance.now();
    while (performance.now() - began < 600) await ask(cluster, connections);
    await until(() => cluster.open === 1); // the one in use
    await until(() => cluster.open === 0 && timers() <= before);
    await ask(cluster, connections);
    expect(cluster.open).toBe(1);
  });

  it('sets no timer while nothing is under way: kafkajs would, a thousand times a second', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster);
    await ask(cluster, connections);
    const set = vi.spyOn(globalThis, 'setTimeout');
    onTestFinished(() => set.mockRestore());
    await pause(100);
    expect(set).not.toHaveBeenCalled();
    expect(cluster.open).toBe(1);
  });

  it('has one timer for a connection that nobody uses, the one that closes it', async () => {
    const cluster = await startCluster();
    const before = timers();
    const connections = sharedOn(cluster);
    await ask(cluster, connections);
    await until(() => timers() <= before + 1);
    expect(cluster.open).toBe(1);
  });

  it('closes the connection where an answer is late, and tells all who wait for one there', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 2 });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', times: 2, first: () => isOpen });
    const late = failure(ask(cluster, connections, { withinMs: 200 }));
    await arrived(cluster, 'Metadata', 1);
    const other = ask(cluster, connections);
    await arrived(cluster, 'Metadata', 2);
    const behind = failure(ask(cluster, connections));
    expect(await late).toBeInstanceOf(CallUnanswered);
    expect(await behind).toMatchObject({
      name: 'NoAnswer',
      cause: {
        message: expect.stringContaining(
          'closed after an earlier request: Metadata: no answer',
        ) as string,
      },
    });
    await until(() => cluster.open === 1);
    open();
    expect(await other).toBe(6);
    await ask(cluster, connections);
  });

  it('closes with it those that nobody uses: to find each of them dead would take as long again', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const connections = sharedOn(cluster);
    await all(10, () => ask(cluster, connections));
    await ask(cluster, connections, { broker: 1 });
    cluster.fault({ api: 'Metadata', deed: 'lose request' });
    expect(await failure(ask(cluster, connections, { withinMs: 100 }))).toBeInstanceOf(
      CallUnanswered,
    );
    await until(() => cluster.open === 1); // to the other broker
    await ask(cluster, connections);
  });

  it('gives a call its time from when its turn has come: one before it may be slow', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 1 });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', first: () => isOpen });
    const slow = ask(cluster, connections);
    await arrived(cluster, 'Metadata', 1);
    const behind = ask(cluster, connections, { withinMs: 300 });
    setTimeout(open, 600);
    expect(await Promise.all([slow, behind])).toEqual([6, 6]);
    expect(byConnection(cluster)).toEqual([2]);
  });

  it('lets one leave at once, and nobody else: its connection stays', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 1 });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', first: () => isOpen });
    const leaving = new AbortController();
    const left = failure(ask(cluster, connections, { signal: leaving.signal }));
    await arrived(cluster, 'Metadata', 1);
    const behind = ask(cluster, connections);
    const reason = new kafkajs.KafkaJSConnectionError('the producer is closed');
    leaving.abort(reason);
    expect(await left).toMatchObject({ name: 'NoAnswer', cause: reason });
    const after = failure(ask(cluster, connections, { signal: leaving.signal }));
    expect(await after).toMatchObject({ name: 'NotSent', cause: reason });
    open();
    expect(await behind).toBe(6);
    expect(byConnection(cluster)).toEqual([2]);
  });

  it('closes a connection, too, where nobody waits for the answer any more that is late', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster);
    cluster.fault({ api: 'Metadata', deed: 'lose request' });
    const leaving = new AbortController();
    const left = failure(ask(cluster, connections, { signal: leaving.signal, withinMs: 100 }));
    await arrived(cluster, 'Metadata', 1);
    leaving.abort(new Error('gone'));
    await left;
    expect(cluster.open).toBe(1);
    await until(() => cluster.open === 0);
  });

  it('lets one leave while the connection is being made: the others go on with it', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 1 });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'ApiVersions', first: () => isOpen });
    const leaving = new AbortController();
    const left = failure(ask(cluster, connections, { signal: leaving.signal }));
    const stays = ask(cluster, connections);
    await arrived(cluster, 'ApiVersions', 1);
    leaving.abort(new Error('gone'));
    expect(await left).toBeInstanceOf(CallNotSent);
    open();
    expect(await stays).toBe(6);
    expect(byConnection(cluster)).toEqual([1]);
  });

  it('tells all who wait for a connection that can not be made, and then makes another', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 1 });
    cluster.fault({ api: 'ApiVersions', deed: 'hang up before' });
    const failed = await Promise.all([
      failure(ask(cluster, connections)),
      failure(ask(cluster, connections)),
    ]);
    for (const each of failed) expect(each).toBeInstanceOf(CallNotSent);
    expect(await ask(cluster, connections)).toBe(6);
    expect(cluster.of('ApiVersions').length).toBe(2);
  });

  it('makes another in place of one that was lost while nobody used it', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster);
    await ask(cluster, connections);
    cluster.hangUp();
    await until(() => cluster.open === 0);
    await turns(); // this side has heard of it
    expect(await ask(cluster, connections)).toBe(6);
  });

  it('asks nothing of a broker that reads nothing more of us, over no connection', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const connections = sharedOn(cluster);
    cluster.fault({ api: 'Metadata', throttleMs: 400 });
    await ask(cluster, connections);
    const began = performance.now();
    const leaving = new AbortController();
    const left = failure(ask(cluster, connections, { signal: leaving.signal }));
    const waiting = [ask(cluster, connections), ask(cluster, connections)];
    await ask(cluster, connections, { broker: 1 });
    leaving.abort(new Error('gone'));
    expect(await left).toBeInstanceOf(CallNotSent);
    expect(performance.now() - began).toBeLessThan(300);
    expect(cluster.of('Metadata').map(({ broker }) => broker)).toEqual([0, 1]);
    expect(await Promise.all(waiting)).toEqual([6, 6]);
    expect(performance.now() - began).toBeGreaterThan(380);
  });

  it('gives what is on its way already the time in which the broker reads nothing', async () => {
    const cluster = await startCluster();
    const connections = sharedOn(cluster, { perBroker: 1 });
    const { isOpen, open } = gate();
    const reads = new Promise((resolve) => setTimeout(resolve, 600));
    cluster.fault({ api: 'Metadata', first: () => isOpen, throttleMs: 500 });
    cluster.fault({ api: 'Metadata', first: () => reads });
    const first = ask(cluster, connections);
    const behind = ask(cluster, connections, { withinMs: 300 });
    await arrived(cluster, 'Metadata', 1);
    open();
    expect(await Promise.all([first, behind])).toEqual([6, 6]);
  });

  it('replaces a connection whose login is used up, and closes it behind its last answer', async () => {
    const cluster = await startCluster({ loginMs: 300 });
    const connections = sharedOn(cluster, { perBroker: 1, ...LOGIN });
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', first: () => isOpen });
    const slow = ask(cluster, connections);
    await arrived(cluster, 'Metadata', 1);
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(await ask(cluster, connections)).toBe(6);
    expect(byConnection(cluster)).toEqual([1, 1]);
    expect(cluster.open).toBe(2);
    open();
    expect(await slow).toBe(6);
    await until(() => cluster.open === 1);
    const logins = cluster.of('SaslAuthenticate').map(({ connection }) => connection);
    expect(logins).toEqual([0, 1]);
  });

  it('ends all at once when it is closed', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const before = timers();
    const connections = sharedOn(cluster);
    await ask(cluster, connections, { broker: 1 }); // nothing is under way there then
    const { isOpen, open } = gate();
    cluster.fault({ api: 'Metadata', times: 9, first: () => isOpen });
    const asked = [0, 0, 0].map(() => failure(ask(cluster, connections)));
    await arrived(cluster, 'Metadata', 1 + 3);
    connections.close();
    for (const each of await Promise.all(asked)) expect(each).toBeInstanceOf(CallUnanswered);
    await until(() => cluster.open === 0 && timers() <= before);
    expect(await failure(ask(cluster, connections))).toBeInstanceOf(CallNotSent);
    open();
  });

  it('ends at once, too, what is just about to be sent: kafkajs forgets it', async () => {
    const cluster = await startCluster();
    for (let steps = 0; steps < 30; steps++) {
      const connections = sharedOn(cluster);
      await ask(cluster, connections);
      const asked = failure(ask(cluster, connections));
      for (let step = 0; step < steps; step++) await Promise.resolve();
      const began = performance.now();
      connections.close();
      const error = await asked;
      expect(performance.now() - began).toBeLessThan(1_000);
      expect([CallNotSent, CallUnanswered].some((kind) => error instanceof kind)).toBe(true);
    }
  });

  it('gives all brokers that the settings name to each of those who ask at once', async () => {
    const cluster = await startCluster({ brokers: 2 });
    const connections = sharedOn(cluster);
    const expected = cluster.addresses.map(({ host, port }) => ({ host, port }));
    for (const seeds of await Promise.all([connections.seeds(), connections.seeds()]))
      expect(seeds).toHaveLength(expected.length);
    expect(await connections.seeds()).toEqual(expect.arrayContaining(expected));
  });
});

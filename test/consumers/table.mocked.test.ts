import type { KafkaMessage } from 'kafkajs';
import { describe, expect, it, vi } from 'vitest';
import { table } from '../../src/consumers/table.ts';
import type { ChangeEvent } from '../../src/schemas/events/envelope.ts';
import { fakeReaders } from '../support/fake-reader.ts';
import {
  AWAY,
  fakeRegistry,
  jsonMessage,
  jsonTopic,
  kafkaUpTo,
  UNRESOLVED,
} from '../support/fake-topic.ts';

vi.mock(import('../../src/sinks/fetch/kafka-reader.ts'), async (original) => ({
  ...(await original()),
  openReader: (await import('../support/fake-reader.ts')).openFakeReader,
}));

interface Wine {
  readonly name: string;
}

const source = (end: number) => ({
  kafka: kafkaUpTo(end),
  registry: fakeRegistry,
  topic: jsonTopic<ChangeEvent<Wine>>(),
});
const wine = (offset: number, name: string, schemaId = 1) =>
  jsonMessage(offset, event(offset, { name }), { key: name, schemaId });
const event = (sequence: number, after: Wine | null) => ({ after, source: { sequence } });

/** The reader of the table that is made by `make`. */
async function made<T>(make: () => T) {
  const opened = fakeReaders.length;
  const held = make();
  return { held, reader: await vi.waitUntil(() => fakeReaders[opened]) };
}

it('fails with what select throws, and is not ready', async () => {
  const failure = new Error('no grape');
  const { held, reader } = await made(() =>
    table(source(2), ({ name }) => {
      if (name === 'b') throw failure;
      return name;
    }),
  );
  const told = new Promise((error) => held.changes$.subscribe({ error }));
  reader.give(0, [wine(0, 'a'), wine(1, 'b')], 2n);
  await expect(held.ready).rejects.toBe(failure);
  expect(await told).toBe(failure);
  expect(reader.isClosed).toBe(true);
});

it('has nothing to give that is out of date: it throws once it has failed', async () => {
  const { held, reader } = await made(() => table(source(1)));
  reader.give(0, [wine(0, 'a')], 1n);
  await held.ready;
  expect(held.get('a')).toEqual({ name: 'a' });
  const told = new Promise((error) => held.changes$.subscribe({ error }));
  reader.give(0, [wine(1, 'b', UNRESOLVED)], 2n);
  const failure = await told;
  expect(failure).toMatchObject({ code: 'VALUE_UNREADABLE' });
  for (const ask of [() => held.get('a'), () => held.size, () => held.entries()]) {
    expect(ask).toThrow(failure);
  }
});

describe('an event that comes late', () => {
  const at = (offset: number, sequence: number, name: string) =>
    jsonMessage(offset, event(sequence, { name }));
  const deletion = (offset: number, sequence: number) => jsonMessage(offset, event(sequence, null));
  const tombstone = (offset: number) => ({ ...jsonMessage(offset, null), value: null });
  /** A table that was given these messages of its one key. */
  const given = async (...messages: KafkaMessage[]) => {
    const { held, reader } = await made(() => table(source(messages.length)));
    const changes: (string | undefined)[] = [];
    held.changes$.subscribe(({ after }) => changes.push(after?.name));
    reader.give(0, messages, BigInt(messages.length));
    await held.ready;
    held.close();
    return { held, changes };
  };

  it('does not put an older image in the place of a newer one', async () => {
    const { held, changes } = await given(at(0, 7, 'old'), at(1, 8, 'new'), at(2, 7, 'old'));
    expect(held.get('k')).toEqual({ name: 'new' });
    expect(changes).toEqual(['old', 'new']);
    expect(held.dropped).toBe(1);
  });

  it('does not bring back what was deleted since', async () => {
    const { held } = await given(at(0, 7, 'old'), deletion(1, 8), tombstone(2), at(3, 7, 'old'));
    expect(held.size).toBe(0);
    expect(held.dropped).toBe(1);
  });

  it('does not take away what came again since, by its tombstone either', async () => {
    const { held } = await given(
      ...[at(0, 7, 'old'), deletion(1, 8), tombstone(2), at(3, 9, 'again')],
      ...[deletion(4, 8), tombstone(5)],
    );
    expect(held.get('k')).toEqual({ name: 'again' });
    expect(held.dropped).toBe(2);
  });
});

it('goes by the tombstone where its deletion was compacted away', async () => {
  const { held, reader } = await made(() => table(source(2)));
  reader.give(0, [wine(0, 'a'), { ...wine(1, 'a'), value: null }], 2n);
  await held.ready;
  held.close();
  expect(held.size).toBe(0);
  expect(held.dropped).toBe(0);
});

it('takes what is published again for news, and each partition by itself', async () => {
  const { held, reader } = await made(() => table(source(3)));
  reader.give(1, [jsonMessage(0, event(9, { name: 'far' }), { key: 'b' })], 1n);
  reader.give(
    0,
    [jsonMessage(0, event(3, { name: 'a' })), jsonMessage(1, event(4, { name: 'A' }))],
    3n,
  );
  await held.ready;
  held.close();
  expect(held.get('k')).toEqual({ name: 'A' });
  expect(held.dropped).toBe(0);
});

it('says that it was closed to who waits for it to be ready', async () => {
  const { held, reader } = await made(() => table(source(2)));
  reader.give(0, [wine(0, 'a')], 1n);
  await vi.waitUntil(() => held.size === 1);
  held.close();
  await expect(held.ready).rejects.toThrow('the table was closed before it was ready');
  expect(held.get('a')).toEqual({ name: 'a' });
});

it('tells of each pause while the registry is away', async () => {
  const onRetry = vi.fn();
  const { held, reader } = await made(() => table({ ...source(1), onRetry }));
  reader.give(0, [wine(0, 'a', AWAY)], 1n);
  await vi.waitUntil(() => onRetry.mock.calls.length > 0);
  held.close();
});

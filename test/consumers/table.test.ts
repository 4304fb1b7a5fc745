import { describe, expect, it, vi } from 'vitest';
import { table } from '../../src/consumers/table.ts';
import type { ChangeEvent } from '../../src/schemas/events/envelope.ts';
import {
  AWAY,
  fakeRegistry,
  jsonMessage,
  jsonTopic,
  kafkaWith,
  UNRESOLVED,
} from '../support/json-topic.ts';
import type { PutMessage } from '../support/json-topic.ts';

interface Wine {
  readonly name: string;
}

/** A topic of one or two partitions that holds these messages in the first one. */
async function sourceOf(messages: readonly PutMessage[], partitions = 1) {
  const { kafka, put, left } = await kafkaWith('t', partitions);
  put(0, ...messages);
  const source = { kafka, registry: fakeRegistry, topic: jsonTopic<ChangeEvent<Wine>>() };
  return { source, put, left };
}
const wine = (sequence: number, name: string, schemaId = 1) =>
  jsonMessage(event(sequence, { name }), { key: name, schemaId });
const event = (sequence: number, after: Wine | null) => ({ after, source: { sequence } });

it('fails with what select throws, and is not ready', async () => {
  const failure = new Error('no grape');
  const { source, left } = await sourceOf([wine(0, 'a'), wine(1, 'b')]);
  const held = table(source, ({ name }) => {
    if (name === 'b') throw failure;
    return name;
  });
  const told = new Promise((error) => held.changes$.subscribe({ error }));
  await expect(held.ready).rejects.toBe(failure);
  expect(await told).toBe(failure);
  await left();
});

it('has nothing to give that is out of date: it throws once it has failed', async () => {
  const { source, put } = await sourceOf([wine(0, 'a')]);
  const held = table(source);
  await held.ready;
  expect(held.get('a')).toEqual({ name: 'a' });
  const told = new Promise((error) => held.changes$.subscribe({ error }));
  put(0, wine(1, 'b', UNRESOLVED));
  const failure = await told;
  expect(failure).toMatchObject({ code: 'VALUE_UNREADABLE' });
  for (const ask of [() => held.get('a'), () => held.size, () => held.entries()]) {
    expect(ask).toThrow(failure);
  }
});

describe('an event that comes late', () => {
  const at = (sequence: number, name: string) => jsonMessage(event(sequence, { name }));
  const deletion = (sequence: number) => jsonMessage(event(sequence, null));
  const tombstone: PutMessage = { key: 'k', value: null };
  /** A table that was given these messages of its one key. */
  const given = async (...messages: PutMessage[]) => {
    const { source } = await sourceOf(messages);
    const held = table(source);
    const changes: (string | undefined)[] = [];
    held.changes$.subscribe(({ after }) => changes.push(after?.name));
    await held.ready;
    held.close();
    return { held, changes };
  };

  it('does not put an older image in the place of a newer one', async () => {
    const { held, changes } = await given(at(7, 'old'), at(8, 'new'), at(7, 'old'));
    expect(held.get('k')).toEqual({ name: 'new' });
    expect(changes).toEqual(['old', 'new']);
    expect(held.dropped).toBe(1);
  });

  it('does not bring back what was deleted since', async () => {
    const { held } = await given(at(7, 'old'), deletion(8), tombstone, at(7, 'old'));
    expect(held.size).toBe(0);
    expect(held.dropped).toBe(1);
  });

  it('does not take away what came again since, by its tombstone either', async () => {
    const { held } = await given(
      ...[at(7, 'old'), deletion(8), tombstone, at(9, 'again')],
      ...[deletion(8), tombstone],
    );
    expect(held.get('k')).toEqual({ name: 'again' });
    expect(held.dropped).toBe(2);
  });
});

it('goes by the tombstone where its deletion was compacted away', async () => {
  const { source } = await sourceOf([wine(0, 'a'), { key: 'a', value: null }]);
  const held = table(source);
  await held.ready;
  held.close();
  expect(held.size).toBe(0);
  expect(held.dropped).toBe(0);
});

it('takes what is published again for news, and each partition by itself', async () => {
  const news = [jsonMessage(event(3, { name: 'a' })), jsonMessage(event(4, { name: 'A' }))];
  const { source, put } = await sourceOf(news, 2);
  put(1, jsonMessage(event(9, { name: 'far' }), { key: 'b' }));
  const held = table(source);
  await held.ready;
  held.close();
  expect(held.get('k')).toEqual({ name: 'A' });
  expect(held.dropped).toBe(0);
});

it('says that it was closed to who waits for it to be ready', async () => {
  const { source, put } = await sourceOf([wine(0, 'a')], 2);
  put(1, wine(0, 'b', AWAY));
  const held = table(source);
  await vi.waitUntil(() => held.size === 1);
  held.close();
  await expect(held.ready).rejects.toThrow(
    'close() of the table was called before all of its topic had been read, so the table never became ready',
  );
  expect(held.get('a')).toEqual({ name: 'a' });
});

it('tells of each pause while the registry is away', async () => {
  const onRetry = vi.fn();
  const { source } = await sourceOf([wine(0, 'a', AWAY)]);
  const held = table({ ...source, onRetry });
  await vi.waitUntil(() => onRetry.mock.calls.length > 0);
  held.close();
});

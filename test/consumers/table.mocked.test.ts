import { expect, it, vi } from 'vitest';
import { table } from '../../src/consumers/table.ts';
import type { ChangeEvent } from '../../src/schemas/envelope.ts';
import { fakeReaders } from '../support/fake-reader.ts';
import {
  AWAY,
  fakeRegistry,
  jsonMessage,
  jsonTopic,
  kafkaUpTo,
  UNRESOLVED,
} from '../support/fake-topic.ts';

vi.mock(import('../../src/sinks/kafka-reader.ts'), async (original) => ({
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
  jsonMessage(offset, { after: { name } }, { key: name, schemaId });

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

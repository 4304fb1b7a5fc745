import { expect, it } from 'vitest';
import { messageReader } from '../../src/consumers/consumed.ts';
import { AWAY, fakeRegistry, jsonMessage, jsonTopic, UNRESOLVED } from '../support/fake-topic.ts';

it('blames a schema that can not be resolved on its message, when its turn has come', async () => {
  const reader = messageReader<string>(fakeRegistry, jsonTopic());
  const before = jsonMessage(4, 'good');
  const bad = jsonMessage(5, 'bad', { schemaId: UNRESOLVED });
  await reader.prepare([before, bad, jsonMessage(6, 'good')]);
  expect(reader.read(3, before).value).toBe('good');
  expect(() => reader.read(3, bad)).toThrow(
    expect.objectContaining({
      code: 'VALUE_UNREADABLE',
      context: { topic: 't', partition: 3, offset: '5' },
      message: expect.stringContaining("Schema8 can't be resolved"),
    }),
  );
  expect(reader.read(3, jsonMessage(6, 'good')).value).toBe('good');
});

it('fails to prepare where the registry is away', async () => {
  const reader = messageReader<string>(fakeRegistry, jsonTopic());
  const message = jsonMessage(0, 'later', { schemaId: AWAY });
  await expect(reader.prepare([message])).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' });
});

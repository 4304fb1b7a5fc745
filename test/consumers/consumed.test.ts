import { expect, it } from 'vitest';
import { MessageReader } from '../../src/consumers/consumed.ts';
import { AWAY, fakeRegistry, jsonMessage, jsonTopic, UNRESOLVED } from '../support/json-topic.ts';
import type { PutMessage } from '../support/json-topic.ts';

const at = (offset: number, { key, value }: PutMessage) => ({
  ...{ offset: String(offset), key: Buffer.from(key), value },
  ...{ timestamp: '0', attributes: 0, headers: {} },
});

it('blames a schema that can not be resolved on its message, when its turn has come', async () => {
  const reader = new MessageReader<string>(fakeRegistry, jsonTopic());
  const before = at(4, jsonMessage('good'));
  const bad = at(5, jsonMessage('bad', { schemaId: UNRESOLVED }));
  await reader.prepare([before, bad, at(6, jsonMessage('good'))]);
  expect(reader.read(3, before).value).toBe('good');
  expect(() => reader.read(3, bad)).toThrow(
    expect.objectContaining({
      code: 'VALUE_UNREADABLE',
      context: { topic: 't', partition: 3, offset: '5' },
      message: expect.stringContaining("Schema8 can't be resolved"),
    }),
  );
  expect(reader.read(3, at(6, jsonMessage('good'))).value).toBe('good');
});

it('fails to prepare where the registry is away', async () => {
  const reader = new MessageReader<string>(fakeRegistry, jsonTopic());
  const message = at(0, jsonMessage('later', { schemaId: AWAY }));
  await expect(reader.prepare([message])).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' });
});

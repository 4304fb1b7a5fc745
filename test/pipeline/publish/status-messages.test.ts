import avro from 'avsc';
import { expect, it } from 'vitest';
import { topicOf } from '../../../src/consumers/topic.ts';
import { listNamed } from '../../../src/description/description.ts';
import { publicationOf } from '../../../src/pipeline/publish/messages.ts';
import type { Task } from '../../../src/pipeline/task.ts';
import { growSchema } from '../../../src/schemas/avro/infer.ts';
import { createEnvelopeCodec } from '../../../src/schemas/events/envelope.ts';
import { canonicalJson } from '../../../src/schemas/json/json.ts';
import type { JsonObject } from '../../../src/schemas/json/json.ts';
import { unframe } from '../../../src/schemas/registry/wire.ts';
import type { Change } from '../../../src/streams/diff/change.ts';
import { ISO } from '../../../src/description/time-format.ts';
import { DESK } from '../../support/desk.ts';
import { NO_DESTINATION } from '../../support/fake-account.ts';

const NOW = Date.UTC(2026, 2, 5, 12);
const destination = {
  ...NO_DESTINATION,
  records: (resource: string) => `desk.${resource}`,
  statusChanges: new Map([
    ['tickets', { topic: 'desk.tickets-status-changes', schemaId: 11 }],
    ['big-machines', { topic: 'desk.machine-states', schemaId: 12 }],
  ]),
};

/** The messages of a created record that are not its event. */
function published(listName: string, keyField: string, record: JsonObject) {
  const list = listNamed(DESK, listName);
  const keyFields = [keyField];
  const schema = growSchema(undefined, [record], { resource: listName, keyFields });
  const codec = createEnvelopeCodec(schema, listName);
  const change: Change = {
    ...{
      key: canonicalJson(record[keyField]!).replaceAll('"', ''),
      op: 'c',
      before: null,
      after: record,
      changed: [],
    },
    ...{ images: { before: null, after: codec.values.encode(record) }, updatedAt: null },
  };
  const config = { topics: { prefix: 'desk' }, description: { times: ISO } };
  const task = { account: { name: 'a' }, list, config, destination } as unknown as Task;
  const { messages, statusChanges } = publicationOf([change], [], {
    ...{ task, recordKeys: undefined, sequence: 6, records: [], offset: 0 },
    ...{ evolution: { current: { schemaId: 1, codec } }, isNewReject: () => true, now: NOW },
  });
  const [event, ...others] = messages;
  expect(event!.topic).toBe(`desk.${listName}`);
  expect(statusChanges).toHaveLength(others.length);
  return others.map(({ topic, key, headers, value, timestampOffset }) => {
    const { schemaId, payload } = unframe(value!);
    const type = avro.Type.forSchema(list.statuses!.schema as avro.Schema);
    const decoded = { ...(type.fromBuffer(Buffer.from(payload)) as object) };
    expect(topicOf(topic).values(list.statuses!.schema)(payload)).toEqual(decoded);
    return { topic, key, schemaId, headers, decoded, timestampOffset };
  });
}

it('a list without a schema of its own has StatusChange in its namespace', () => {
  const ticket = {
    id: 'T-1',
    open: true,
    changed: '2026-03-05T10:00:00Z',
    steps: [{ no: 7, done: 'no' }],
  };
  const [open, step, ...more] = published('tickets', 'id', ticket);
  expect(more).toEqual([]);
  expect(listNamed(DESK, 'tickets').statuses!.schema).toMatchObject({
    name: 'StatusChange',
    namespace: 'cellarstream.desk.tickets',
  });
  expect(open).toMatchObject({
    topic: 'desk.tickets-status-changes',
    key: 'T-1',
    schemaId: 11,
    timestampOffset: 1,
    headers: {
      ce_type: 'cellarstream.StatusChange',
      ce_source: '/cellarstream/a/tickets',
      ce_time: '2026-03-05T10:00:00.000Z',
    },
  });
  expect(open!.decoded).toEqual({
    event_id: open!.headers!.ce_id,
    key: 'T-1',
    subject: 'ticket',
    subject_id: null,
    field: 'open',
    from: null,
    to: 'true',
    changed_at: Date.UTC(2026, 2, 5, 10),
    observed_at: NOW,
  });
  expect(step!.decoded).toMatchObject({ key: 'T-1', subject: 'step', subject_id: '7', to: 'no' });
  expect(step!.headers!.ce_id).not.toBe(open!.headers!.ce_id);
});

it('a list with a schema of its own has the key field in place of the key', () => {
  const [message, ...more] = published('big-machines', 'serial', { serial: 42, state: 'on' });
  expect(more).toEqual([]);
  expect(message).toMatchObject({
    topic: 'desk.machine-states',
    key: '42',
    schemaId: 12,
    headers: { ce_type: 'cellarstream.MachineState' },
  });
  expect(message!.decoded).toEqual({
    event_id: message!.headers!.ce_id,
    serial: 42,
    subject: 'machine',
    subject_id: null,
    field: 'state',
    from: null,
    to: 'on',
    changed_at: null,
    observed_at: NOW,
  });
  const [unnumbered] = published('big-machines', 'serial', { serial: 'M-42', state: 'on' });
  expect(unnumbered!.decoded).toMatchObject({ serial: null });
});

it('a list without statuses has its events alone', () => {
  expect(published('people', 'id', { id: 1, state: 'on' })).toEqual([]);
});

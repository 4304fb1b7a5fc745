import { concatMap, from, lastValueFrom, toArray } from 'rxjs';
import { orderEvents } from '../../src/consumers/wine-topics.ts';
import { readAs } from '../../src/consumers/topic.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import { orderStatusChangeCodec } from '../../src/description/wine/order-status.ts';
import { createEnvelopeCodec } from '../../src/schemas/events/envelope.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { orderSchema } from '../../src/description/wine/order.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { deadLetterMessages } from '../../src/pipeline/publish/dead-letters.ts';
import { changeMessages, statusMessage } from '../../src/pipeline/publish/messages.ts';
import type { Message } from '../../src/sinks/sink.ts';
import { diff } from '../../src/streams/diff/diff.ts';
import type { ReadRecords } from '../../src/streams/diff/diff.ts';
import { statusChanges } from '../../src/streams/diff/status-changes.ts';
import { keyRecords } from '../../src/streams/records/records.ts';
import { keyOfFields } from '../../src/streams/records/key-of.ts';
import { WINE_STAMPS } from '../support/records.ts';
import { ORDERS } from '../support/orders.ts';

/** A message with its value decoded, as a text shows it. */
export interface Example {
  readonly key: string | null;
  readonly headers: Message['headers'];
  readonly value: object | null;
}

/** Examples of every kind of message for consumers, of one order. */
export interface Examples {
  readonly firstRead: Example;
  readonly updated: Example;
  readonly deleted: Example;
  readonly tombstone: Example;
  readonly status: Example;
  readonly deadLetter: Example;
}

const NOW = Date.parse('2026-03-02T09:30:00.000Z');
/** Between the change in the API and the event of it. */
const DELAY_MS = 740;
const ORDER = 100_008;
const ORIGIN = { account: 'default', resource: 'orders', prefix: 'wine', version: '0.1.0' };

/**
 * One order of the sandbox, met by an initial snapshot, then changed, then deleted, through the code that
 * makes the service's messages. The same each time: its seed is fixed, and so is every clock.
 */
export async function topicExamples(prefix: string): Promise<Examples> {
  const codec = createEnvelopeCodec(orderSchema, ORIGIN.resource);
  const key = String(ORDER);
  const versions = await versionsOfOrder();
  const reads: ReadRecords[] = [
    ...versions.map((record) => ({ records: keyRecords([record], () => key, WINE_STAMPS).keyed })),
    { records: [], gone: [key] },
  ];
  const { arrays: identities } = listNamed(WINE, 'orders');
  const images = new Map<string, Buffer>();
  const [first, update, deletion] = await lastValueFrom(
    from(reads).pipe(
      diff({ codec: codec.values, isNew: () => false, images, identities }),
      concatMap(({ changes }) => {
        for (const { images: bytes } of changes) if (bytes.after) images.set(key, bytes.after);
        return changes;
      }),
      toArray(),
    ),
  );

  const to = { topic: `${prefix}.orders`, schemaId: 1 };
  const at = { to, codec, origin: ORIGIN };
  const read = orderEvents(codec.schema);
  const event = ({ key, headers, value }: Message): Example => ({
    key,
    headers,
    value: value && read(unframe(value).payload),
  });
  const [firstRead] = changeMessages(first!, 41, { ...at, now: NOW });
  const [updated] = changeMessages(update!, 318, { ...at, now: NOW + DELAY_MS });
  const [deleted, tombstone] = changeMessages(deletion!, 2_907, { ...at, now: NOW + DELAY_MS });

  const [change] = statusChanges(update!, ORDERS);
  const status = statusMessage(
    change!,
    { key, image: update!.after!, sequence: 318 },
    { to: { ...to, schema: ORDERS.statuses!.schema }, origin: ORIGIN, now: NOW + DELAY_MS },
  );
  const [reject] = keyRecords([{ id: null, name: 'Pinot Noir' }], keyOfFields(['id'])).rejected;
  const [deadLetter] = deadLetterMessages(reject!, {
    to,
    resource: 'products',
    offset: 2_000,
    maxBytes: 800_000,
    now: NOW,
  });
  const flat = ({ key, headers, value }: Message, codec: { schema: typeof orderSchema }) => ({
    key,
    headers,
    value: value && readAs(codec.schema)(codec.schema)(unframe(value).payload),
  });
  return {
    firstRead: event(firstRead!),
    updated: event(updated!),
    deleted: event(deleted!),
    tombstone: event(tombstone!),
    status: flat(status, orderStatusChangeCodec),
    deadLetter: flat(deadLetter!, deadLetterCodec),
  };
}

/** The order as it is, and after its next change of status. */
async function versionsOfOrder(): Promise<JsonObject[]> {
  const sandbox = await startSandbox({
    seed: 11,
    records: { orders: 20, customers: 20 },
    historyEndsAt: Date.parse('2026-03-01T00:00:00.000Z'),
    now: () => NOW,
  });
  const order = () => sandbox.truth.get('orders', ORDER) as JsonObject;
  const before = order();
  sandbox.advance(ORDER);
  const after = order();
  await sandbox.close();
  return [before, after];
}

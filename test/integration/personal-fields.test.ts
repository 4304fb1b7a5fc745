import { createHmac } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { expect, inject, it } from 'vitest';
import type { Sandbox } from '../../src/sandbox/index.ts';
import { onCrash } from '../support/crash.ts';
import type { Cli } from './support/cli.ts';
import { endsOf } from './support/event-reader.ts';
import { cliForTest, connections, folderForTest, sandboxForTest } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';
import type { Read } from './support/topic-reader.ts';

const PREFIX = 'personal-fields';
const TOPICS = [
  'orders',
  'customers',
  'order-status-changes',
  'dead-letters',
  'cursors',
  'signals',
];
const KEY = 'a key that nobody guesses';
/** Everything in a named field says so, and what is to be seen says that. */
const SHOWN = 'shown-to-all';
const PLANTED = /planted-[a-z]+/g;
/** What the second run is to hide as well. */
const LATER = 'later-to-be-hidden';
const EMAIL = 'planted-email@example.com';
const ORDER = { email: EMAIL, phone: 'planted-phone', notes: SHOWN, class: LATER };
const CARD = { payment_type: SHOWN, last_four: 'planted-four', card_brand: 'planted-brand' };

const HIDE = {
  PII_DROP: 'orders.shipping_address_line1,orders.tender_info.last_four,customers.address',
  PII_MASK: 'orders.phone,orders.tender_info.card_brand,customers.tags',
  PII_HMAC: 'orders.email,customers.email,customers.emial',
  PII_HMAC_KEY: KEY,
};

/** Plants values in the named fields of both lists: in records that change, and that nobody can publish. */
function plant(sandbox: Sandbox): { readonly order: number; readonly customer: number } {
  const [order, keyless, textual] = [...sandbox.truth.keys('orders')] as [number, number, number];
  const [customer, nested] = [...sandbox.truth.keys('customers')] as [number, number];
  const address = { shipping_address_line1: 'planted-street', tender_info: [CARD, CARD] };
  sandbox.change('orders', order, { ...ORDER, ...address });
  sandbox.change('orders', keyless, { ...ORDER, ...address });
  sandbox.loseKey('orders', keyless);
  sandbox.replaceText('orders', textual, JSON.stringify(['planted-text', { email: EMAIL }]));
  const who = { email: EMAIL, tags: ['planted-tag', 'planted-other'], notes: SHOWN };
  sandbox.change('customers', customer, { ...who, address: { street: 'planted-home' } });
  // Another type than everywhere else, and one that is later taken for a name.
  sandbox.change('customers', nested, { ...who, email: { at: EMAIL }, address: 'planted-place' });
  return { order, customer };
}

const kafka = () => new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });

/** Every committed byte of the topics, from these ends on, keys and headers included. */
async function bytesIn(from: ReadonlyMap<string, bigint> = new Map()): Promise<string> {
  const names = TOPICS.map((name) => `${PREFIX}.${name}`);
  const left = await endsOf(kafka(), names);
  const consumer = kafka().consumer({
    groupId: `${PREFIX}-bytes-${from.size}`,
    maxWaitTimeInMs: 250,
  });
  const texts: string[] = [];
  await consumer.connect();
  await consumer.subscribe({ topics: names, fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    onCrash(consumer, reject);
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      const name = `${payload.topic} ${payload.partition}`;
      if (BigInt(payload.lastOffset) + 1n >= (left.get(name) ?? Infinity)) left.delete(name);
      if (left.size === 0) resolve();
    });
    void consumer.run({
      eachMessage: ({ topic, partition, message: { key, value, headers, offset } }) => {
        const isNew = BigInt(offset) >= (from.get(`${topic} ${partition}`) ?? 0n);
        if (isNew)
          texts.push(`${topic} ${String(key)} ${String(value)} ${JSON.stringify(headers)}`);
        return Promise.resolve();
      },
    });
  });
  await consumer.disconnect();
  return texts.join('\n');
}

const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name)).toString('latin1'))
    .join('\n');

type Event = {
  readonly op: string;
  readonly before: Record<string, unknown> | null;
  readonly after: Record<string, unknown> | null;
  readonly changed: readonly string[];
};
const topicOf = (name: string) =>
  readTopic(inject('brokers'), inject('registryUrl'), `${PREFIX}.${name}`);
const eventsOf = (read: readonly Read[], key: number) =>
  read.filter((each) => each.key === String(key)).map(({ value }) => value as Event);

/** Resolves when each of the lists is read whole. */
const readWhole = (service: Cli) =>
  Promise.all(
    ['orders', 'customers'].map((name) =>
      service.logged(
        ({ event, resource, done }) => event === 'first-read' && resource === name && done === true,
      ),
    ),
  );

it('personal fields are in no topic, no file, no log and no output; and out of what comes after they were named', async () => {
  const sandbox = await sandboxForTest({ records: { orders: 12, customers: 12 } });
  const state = folderForTest();
  const env = {
    ...connections(sandbox, PREFIX, state),
    ...{ RESOURCES: 'orders,customers', QUOTA_PER_MINUTE: '1000', LOGIN_QUOTA_PER_MINUTE: '1000' },
    ...{ POLL_INTERVAL_MS: '100', LOG_LEVEL: 'trace' },
    ...HIDE,
  };
  const { order, customer } = plant(sandbox);

  // From the beginning.
  const service = cliForTest(['run'], env);
  const peeks = ['orders', 'customers'].map((name) => cliForTest(['peek', name], env));
  const check = cliForTest(['check'], env);
  await readWhole(service);
  sandbox.change('orders', order, { phone: 'planted-mobile', payment_status: 'refunded' });
  await service.logged(({ event }) => event === 'dead-letter');
  const status = async () => (await topicOf('order-status-changes')).length;
  await expect.poll(status, { timeout: 30_000, interval: 500 }).toBeGreaterThan(0);
  await Promise.all([...peeks, check].map(({ ended }) => ended));
  expect(await service.end('SIGTERM')).toBe(0);

  const said = [service, ...peeks, check].map((cli) => cli.stdout() + cli.stderr()).join('\n');
  const published = await bytesIn();
  for (const text of [published, filesIn(state), said]) {
    expect(text).toContain(SHOWN); // it would be seen
    expect(text.match(PLANTED) ?? []).toEqual([]);
  }
  expect(published).toContain('hmac-sha256:');
  const letters = await topicOf('dead-letters');
  expect(letters.map(({ value }) => value!.reason).sort()).toEqual(['no-key', 'not-an-object']);
  const unseen = { event: 'pii-unseen', level: 'warn', resource: 'customers', field: 'emial' };
  for (const cli of [service, peeks[1]!]) {
    expect(cli.lines().filter(({ event }) => event === 'pii-unseen')).toMatchObject([unseen]);
  }
  expect(check.stdout()).toMatch(/customers .* hides address, tags, email, emial \(not seen\)/);

  // The same e-mail address is the same text in both lists, and anybody with the key can tell which.
  const hmac = `hmac-sha256:${createHmac('sha256', KEY).update(JSON.stringify(EMAIL)).digest('hex')}`;
  const [orders, customers] = [await topicOf('orders'), await topicOf('customers')];
  const last = eventsOf(orders, order).at(-1)!.after!;
  expect(last.email).toBe(hmac);
  expect(eventsOf(customers, customer).at(-1)!.after!.email).toBe(hmac);
  expect(last).toMatchObject({ phone: '***', shipping_address_line1: null, class: LATER });
  expect(last.tender_info).toMatchObject(
    [CARD, CARD].map(({ payment_type }) => ({ payment_type, card_brand: '***', last_four: null })),
  );

  // With one more field, which was published before.
  expect(published).toContain(LATER);
  const ends = await endsOf(
    kafka(),
    TOPICS.map((name) => `${PREFIX}.${name}`),
  );
  const later = { ...env, PII_MASK: `${HIDE.PII_MASK},orders.class` };
  const successor = cliForTest(['run'], later);
  await successor.logged(({ event, resource }) => event === 'ready' && resource === 'orders');
  const again = cliForTest(['resync', '--resource', 'orders'], later);
  await again.succeeded();
  expect(await successor.end('SIGTERM')).toBe(0);

  const after = await bytesIn(ends);
  expect(after).toContain(SHOWN);
  expect(after).not.toContain(LATER);
  expect(after.match(PLANTED) ?? []).toEqual([]);
  const changes = eventsOf(await topicOf('orders'), order).filter(({ op }) => op === 'u');
  expect(changes.at(-1)).toMatchObject({
    before: { class: '***', email: hmac },
    after: { class: '***', email: hmac },
    changed: ['class'],
  });
});

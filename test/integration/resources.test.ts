import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { Resource, Sandbox } from '../../src/sandbox/index.ts';
import { readTail } from '../../src/sinks/fetch/kafka-tail.ts';
import { topicEnds } from './support/topic-ends.ts';
import type { Cli, LogLine } from './support/cli.ts';
import { follow } from './support/follow.ts';
import { checkRecords, envelopeOf, truthOf } from './support/record-checker.ts';
import { requested, swept } from './support/rounds.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest, settings } from './support/service.ts';
import type { Env } from './support/service.ts';
import type { Read } from './support/topic-reader.ts';

const FEW = {
  orders: 30,
  customers: 25,
  inventory: 20,
  'wine-clubs': 4,
  'wine-club-members': 15,
  products: 12,
};
const PATIENCE = { timeout: PATIENCE_MS };
besideEachOther();

const kafka = () => new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
const ends = async (topic: string) => Object.fromEntries(await topicEnds(kafka(), topic));

/** The settings of `run`, with all resources unless some are named. */
function settingsFor(sandbox: Sandbox, prefix: string, resources?: readonly Resource[]): Env {
  const named = resources ? resources.join() : ''; // empty is as good as not set
  const env = settings(sandbox, prefix, folderForTest());
  return { ...env, RESOURCES: named, LOG_LEVEL: 'debug' };
}

const linesOf = (service: Cli, event: string, resource?: Resource) =>
  service
    .lines()
    .filter((line) => line.event === event && (!resource || line.resource === resource));

const isOf = (event: string, resource: Resource) => (line: LogLine) =>
  line.event === event && line.resource === resource;

async function allReady(service: Cli, resources: readonly Resource[] = RESOURCES): Promise<void> {
  await Promise.all(resources.map((resource) => service.logged(isOf('ready', resource))));
}

/** Resolves when a topic's last images are what the sandbox says. */
async function tells(
  events: readonly Read[],
  truth: () => ReadonlyMap<string, unknown>,
): Promise<void> {
  await vi.waitFor(() => expect(checkRecords(events, truth()).violations).toEqual([]), PATIENCE);
}

/** The newest cursor of each task. */
async function cursors(prefix: string): Promise<Record<string, Record<string, unknown>>> {
  const found: Record<string, Record<string, unknown>> = {};
  const topic = `${prefix}.cursors`;
  await readTail({
    kafka: kafka(),
    topic,
    from: new Map(),
    to: await topicEnds(kafka(), topic),
    onMessages: (messages) => {
      for (const { key, value } of messages) {
        found[key!.toString()] = JSON.parse(value!.toString()) as Record<string, unknown>;
      }
      return Promise.resolve();
    },
  });
  return found;
}

describe.concurrent('run without RESOURCES', TIMEOUT, () => {
  it('publishes all six and what becomes of them, with a cursor and a line "ready" each', async () => {
    const sandbox = await sandboxForTest({ records: FEW });
    const service = cliForTest(['run'], settingsFor(sandbox, 'all-six'));
    await allReady(service);
    const topics = RESOURCES.map((resource) => [resource, follow(`all-six.${resource}`)] as const);
    for (const [resource, events] of topics) await tells(events, () => truthOf(sandbox, resource));
    for (const [resource, events] of topics) {
      expect(checkRecords(events, truthOf(sandbox, resource)).ops).toEqual({ r: FEW[resource] });
    }

    sandbox.changeSome(60);
    sandbox.create('wine-clubs'); // those seldom change
    for (const [resource, events] of topics) await tells(events, () => truthOf(sandbox, resource));
    const changed = new Set(sandbox.truth.changes.map(({ resource }) => resource));
    expect([...changed].sort()).toEqual([...RESOURCES].sort());

    expect(await service.end('SIGTERM')).toBe(0);
    for (const resource of RESOURCES) expect(linesOf(service, 'ready', resource)).toHaveLength(1);
    const found = await cursors('all-six');
    expect(Object.keys(found).sort()).toEqual(RESOURCES.map((name) => `default/${name}`).sort());
    for (const cursor of Object.values(found)) {
      expect(cursor).toMatchObject({ firstRead: { done: true } });
    }
  });

  it('goes on with the others while one is answered 500, names it, and reads it once it heals', async () => {
    const others = RESOURCES.filter((resource) => resource !== 'products');
    const sandbox = await sandboxForTest({ records: FEW });
    const headers = { 'retry-after': '1' }; // so that what heals is seen soon
    const heal = sandbox.fault({ endpoint: 'products', kind: 'status', status: 500, headers });
    const env = settingsFor(sandbox, 'one-fails');
    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    const service = cliForTest(['run'], env);
    await allReady(service, others);
    const topics = others.map((resource) => [resource, follow(`one-fails.${resource}`)] as const);
    for (const [resource, events] of topics) await tells(events, () => truthOf(sandbox, resource));
    sandbox.changeSome(40);
    for (const [resource, events] of topics) await tells(events, () => truthOf(sandbox, resource));

    const isTried = ({ event, what, count }: LogLine) =>
      event === 'retry' && what === 'products' && Number(count) >= 2;
    expect(await service.logged(isTried)).toMatchObject({
      level: 'warn',
      err: { code: 'API_STATUS', context: { status: 500 } },
    });
    // A broker that is slow to say who leads a new topic may be tried again, too.
    const named = linesOf(service, 'retry').filter(({ what }) => what !== 'kafka');
    expect(new Set(named.map(({ what }) => what))).toEqual(new Set(['products']));

    expect(await check.ended).toBe(1);
    for (const resource of others) {
      expect(check.stdout()).toMatch(new RegExp(`^${resource} +ok +\\d+ records, key \\w+`, 'm'));
    }
    expect(check.stdout()).toMatch(/^products +FAIL .*500/m);

    heal();
    await tells(follow('one-fails.products'), () => truthOf(sandbox, 'products'));
    expect(await service.end('SIGTERM')).toBe(0);
  });
});

describe.concurrent('the key of a list that nobody has described', TIMEOUT, () => {
  it('is chosen once and kept; another setting stops that list alone', async () => {
    const sandbox = await sandboxForTest({ records: FEW });
    const env = settingsFor(sandbox, 'kept-key', ['products', 'customers']);
    const first = cliForTest(['run'], env);
    await allReady(first, ['products', 'customers']);
    const [products, customers] = [follow('kept-key.products'), follow('kept-key.customers')];
    await tells(products, () => truthOf(sandbox, 'products'));
    await tells(customers, () => truthOf(sandbox, 'customers'));
    expect(await first.end('SIGTERM')).toBe(0);
    expect(linesOf(first, 'key-fields', 'products')).toMatchObject([{ keyFields: ['id'] }]);
    expect(await cursors('kept-key')).toMatchObject({ 'default/products': { keyFields: ['id'] } });

    const second = cliForTest(['run'], { ...env, KEY_FIELDS_PRODUCTS: 'title' });
    const failed = await second.logged(isOf('failed', 'products'));
    expect(failed).toMatchObject({ level: 'error', err: { code: 'KEY_FIELDS' } });
    expect(JSON.stringify(failed.err)).toMatch(/KEY_FIELDS_PRODUCTS is title.*keyed by id/);
    const known = products.length;
    const asked = sandbox.truth.requests('products').length;
    const [product] = sandbox.truth.keys('products');
    const [customer] = sandbox.truth.keys('customers');
    sandbox.change('products', product!, { title: 'Reserve' });
    sandbox.change('customers', customer!, { notes: 'others go on' });
    await tells(customers, () => truthOf(sandbox, 'customers'));
    await requested(sandbox, 'customers');
    expect(products).toHaveLength(known);
    expect(sandbox.truth.requests('products')).toHaveLength(asked);
    expect(linesOf(second, 'failed')).toHaveLength(1);
    expect(await second.end('SIGTERM')).toBe(0);

    const third = cliForTest(['run'], { ...env, KEY_FIELDS_PRODUCTS: 'id' });
    await tells(products, () => truthOf(sandbox, 'products'));
    expect(products).toHaveLength(known + 1);
    expect(linesOf(third, 'key-fields')).toEqual([]); // nothing was chosen anew
    expect(await third.end('SIGTERM')).toBe(0);
  });

  it('is asked for where none fits, with the names seen; two fields together do', async () => {
    const sandbox = await sandboxForTest({ records: FEW });
    // Neither the branch nor the number is a key, but both together are.
    [...sandbox.truth.keys('customers')].forEach((key, place) => {
      const record = { branch: `north|${place % 2}`, number: place >> 1, full_name: 'Ada Ruiz' };
      sandbox.replaceText('customers', key, JSON.stringify(record));
    });
    const truth = () =>
      truthOf(sandbox, 'customers', (_, record) => {
        const { branch, number } = record as { branch: string; number: number };
        return `${branch.replace('|', '\\|')}|${number}`;
      });
    const env = settingsFor(sandbox, 'no-key', ['customers', 'inventory']);
    const first = cliForTest(['run'], env);
    const failed = await first.logged(isOf('failed', 'customers'));
    expect(failed).toMatchObject({ level: 'error', err: { code: 'KEY_FIELDS' } });
    expect(JSON.stringify(failed)).toContain('KEY_FIELDS_CUSTOMERS');
    expect(JSON.stringify(failed)).toContain('branch, full_name, number');
    expect(first.stderr()).not.toContain('Ada Ruiz');
    const inventory = follow('no-key.inventory');
    await tells(inventory, () => truthOf(sandbox, 'inventory'));
    sandbox.create('inventory');
    await tells(inventory, () => truthOf(sandbox, 'inventory'));

    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    expect(await check.ended).toBe(1);
    expect(check.stdout()).toMatch(/^customers +FAIL .*KEY_FIELDS_CUSTOMERS.*branch, full_name/m);
    expect(check.stdout()).toMatch(/^inventory +ok .*key sku/m);
    expect(await first.end('SIGTERM')).toBe(0);

    const set = { ...env, KEY_FIELDS_CUSTOMERS: 'branch, number' };
    const second = cliForTest(['run'], set);
    const customers = follow('no-key.customers');
    await tells(customers, truth);
    expect(checkRecords(customers, truth()).ops).toEqual({ r: FEW.customers });
    expect(await second.end('SIGTERM')).toBe(0);

    const checked = cliForTest(['check'], { ...set, STATE_DIR: folderForTest() });
    await checked.succeeded();
    expect(checked.stdout()).toMatch(/^customers +ok .*key branch\+number/m);
  });

  it('is waited for while a list is empty; what is made after that is new', async () => {
    const sandbox = await sandboxForTest({ records: { ...FEW, products: 0 } });
    const env = settingsFor(sandbox, 'empty', ['products', 'customers']);
    const service = cliForTest(['run'], env);
    await allReady(service, ['products', 'customers']);
    const [products, customers] = [follow('empty.products'), follow('empty.customers')];
    await requested(sandbox, 'products', 3);
    await tells(customers, () => truthOf(sandbox, 'customers'));

    const check = cliForTest(['check'], { ...env, STATE_DIR: folderForTest() });
    await check.succeeded();
    expect(check.stdout()).toMatch(/^products +ok +0 records, no record yet/m);

    const created = sandbox.create('products');
    const older = sandbox.create('products', { created_at: '2019-06-01T12:00:00.000Z' });
    await tells(products, () => truthOf(sandbox, 'products'));
    const ops = products.map((event) => [event.key, envelopeOf(event).op]);
    expect(Object.fromEntries(ops)).toEqual({ [created]: 'c', [older]: 'r' });
    expect(linesOf(service, 'key-fields', 'products')).toMatchObject([{ keyFields: ['id'] }]);

    // Two complete readings: from the end of the first on nothing can be missing of the initial snapshot.
    await requested(sandbox, 'products', 3);
    const later = sandbox.create('products', { created_at: '2019-06-01T12:00:00.000Z' });
    await tells(products, () => truthOf(sandbox, 'products'));
    expect(products.map((event) => [event.key, envelopeOf(event).op]).at(-1)).toEqual([
      String(later),
      'c', // the initial snapshot is over
    ]);
    expect(await service.end('SIGTERM')).toBe(0);
  });
});

describe.concurrent('a list without dates', TIMEOUT, () => {
  it('shows what is new and changed by sweeps; one that finds nothing writes nothing', async () => {
    const sandbox = await sandboxForTest({ records: FEW });
    const service = cliForTest(['run'], settingsFor(sandbox, 'undated', ['inventory']));
    await allReady(service, ['inventory']);
    const events = follow('undated.inventory');
    await tells(events, () => truthOf(sandbox, 'inventory'));

    const created = sandbox.create('inventory');
    const [altered] = sandbox.truth.keys('inventory');
    sandbox.change('inventory', altered!, { quantity_on_hand: 77_777 });
    await tells(events, () => truthOf(sandbox, 'inventory'));
    const news = events.slice(FEW.inventory);
    expect(news.map((event) => [event.key, envelopeOf(event).op])).toEqual(
      expect.arrayContaining([
        [created, 'c'],
        [altered, 'u'],
      ]),
    );
    expect(news).toHaveLength(2);
    const update = envelopeOf(news.find(({ key }) => key === altered)!);
    expect(update.changed).toEqual(['quantity_on_hand']);

    const before = await ends('undated.inventory');
    await swept(service, 'inventory');
    await requested(sandbox, 'inventory', 10);
    expect(await ends('undated.inventory')).toEqual(before);
    expect(await service.end('SIGTERM')).toBe(0);
  });
});

describe.concurrent('peek', TIMEOUT, () => {
  it.each([
    ['products', ['--limit', '3'], 3],
    ['inventory', [], FEW.inventory],
  ] as const)('prints events of %s %j', async (resource, flags, count) => {
    const sandbox = await sandboxForTest({ records: FEW });
    const env = { API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey, STATE_DIR: folderForTest() };
    const peek = cliForTest(['peek', resource, ...flags], env);
    await peek.succeeded();
    const lines = peek.stdout().trimEnd().split('\n');
    const events = lines.map((line) => JSON.parse(line) as { key: string; after: unknown });
    const truth = [...truthOf(sandbox, resource)].slice(0, count);
    expect(events.map(({ key, after }) => [key, after])).toEqual(truth);
    expect(peek.stderr()).toBe('');
  });
});

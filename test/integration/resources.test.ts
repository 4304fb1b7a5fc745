import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { LogLine } from './support/cli.ts';
import { allReady, cursors, FEW, kafka, linesOf, settingsFor, tells } from './support/all-lists.ts';
import { follow } from './support/follow.ts';
import { checkRecords, envelopeOf, truthOf } from './support/checker.ts';
import { requested, swept } from './support/rounds.ts';
import { besideEachOther, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest } from './support/service.ts';
import { topicEnds } from './support/topic-ends.ts';

besideEachOther();

const ends = async (topic: string) => Object.fromEntries(await topicEnds(kafka(), topic));

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

  it('publishes a seventh list after one more entry in a description', async () => {
    const sandbox = await sandboxForTest({ records: FEW });
    const folder = folderForTest();
    const wine = fileURLToPath(new URL('../../src/description/wine/', import.meta.url));
    for (const file of ['order.avsc', 'order-status-change.avsc'])
      copyFileSync(join(wine, file), join(folder, file));
    const text = readFileSync(join(wine, 'wine.yaml'), 'utf8');
    writeFileSync(
      join(folder, 'seven.yaml'),
      `${text}  bottles: { path: /v1/products, dates: *dates, keys: [product_id, id] }\n`,
    );
    const env = settingsFor(sandbox, 'seventh');
    const service = cliForTest(['run'], { ...env, API_DESCRIPTION: join(folder, 'seven.yaml') });
    await Promise.all(
      [...RESOURCES, 'bottles'].map((list) =>
        service.logged(({ event, resource }) => event === 'ready' && resource === list),
      ),
    );
    const bottles = follow('seventh.bottles');
    await tells(bottles, () => truthOf(sandbox, 'products'));
    sandbox.create('products');
    await tells(bottles, () => truthOf(sandbox, 'products'));
    const found = await cursors('seventh');
    expect(found['default/bottles']).toMatchObject({ firstRead: { done: true } });
    const { url } = await service.logged(({ event }) => event === 'listening');
    const metrics = await (await fetch(`${String(url)}/metrics`)).text();
    expect(metrics).toMatch(
      /cellarstream_first_read_records\{account="default",resource="bottles"\} \d+/,
    );
    expect(await (await fetch(`${String(url)}/status`)).text()).toContain('"bottles"');
    expect(await service.end('SIGTERM')).toBe(0);
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

import { describe, expect, it } from 'vitest';
import { allReady, cursors, FEW, isOf, linesOf, settingsFor, tells } from './support/all-lists.ts';
import { follow } from './support/follow.ts';
import { checkRecords, envelopeOf, truthOf } from './support/checker.ts';
import { requested } from './support/rounds.ts';
import { besideEachOther, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest } from './support/service.ts';

besideEachOther();

describe.concurrent('the key of a list without a described schema', TIMEOUT, () => {
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

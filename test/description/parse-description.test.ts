import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import { isPagedByOffset } from '../../src/description/description.ts';
import { descriptionInWords } from '../../src/description/in-words.ts';
import { parseDescription, readDescription } from '../../src/description/read-description.ts';
import { MISTAKES } from './mistakes.ts';

const SHOP = join(import.meta.dirname, 'shop.yaml');
const shop = readFileSync(SHOP, 'utf8');
const WINE = join(import.meta.dirname, '../../src/description/wine/wine.yaml');

/** Lines of the error of a description; none if it is valid. */
function mistakesIn(text: string): string[] {
  try {
    parseDescription(text, SHOP);
    return [];
  } catch (error) {
    if (!(error instanceof CellarstreamError) || error.code !== 'SETTINGS') throw error;
    return error.message.split('\n');
  }
}

describe('parseDescription', () => {
  it.each(MISTAKES)('%j -> %j', (before, after, ...lines) => {
    expect(shop).toContain(before);
    expect(mistakesIn(shop.replace(before, after))).toEqual(
      lines.map((line) => `shop.yaml:${line}`),
    );
  });

  it('reports all mistakes at once, in the order of the file', () => {
    const text = shop.replace('paging: offset', 'paging: page').replace('    key: id\n', '');
    expect(mistakesIn(text)).toEqual([
      'shop.yaml:7:3 lists.orders needs `key`, the field that identifies a record (or `keys`: candidates for it)',
      'shop.yaml:9:13 lists.orders.paging is page, but no parameter sends {page}',
      'shop.yaml:10:22 lists.orders.query.offset: {offset} is not a variable here; use page, limit, from, to or the parameter shop',
    ]);
  });

  it('names the place in `list` of a mistake that several lists inherit, once', () => {
    const text = `format: 1
api: shop
auth: none
quota: 2/s per key
list: { paging: offset, query: { at: '{page}' }, total: /n, records: '', key: id, limit: 50 }
lists:
  a: { path: /a, query: { at: '{offset}', n: '{limit}' } }
  b: { path: /b }
  c: { path: /c }
`;
    expect(mistakesIn(text)).toEqual([
      'shop.yaml:5:17 list.paging is offset, but no parameter sends {offset}',
      'shop.yaml:5:38 list.query.at: {page} is not a variable here; use offset, limit',
    ]);
  });

  it('names the settings that a description needs', () => {
    expect(parseDescription(shop, SHOP).settingUses).toEqual({
      API_PARAM_SHOP: 'shop.yaml:3:14 parameters.0: {shop} needs API_PARAM_SHOP',
      API_KEY: 'shop.yaml:4:17 auth.bearer: {api_key} needs API_KEY or API_KEY_FILE',
    });
  });

  it('tells an empty file from a wrong one, and accepts an empty password', () => {
    expect(mistakesIn('# nothing yet\n')).toEqual([
      'shop.yaml:1:1 the file is empty; expected format, api, auth, quota and lists',
    ]);
    const basic = shop.replace(/^auth: .*$/m, "auth: { basic: ['{api_key}', ''] }");
    expect(mistakesIn(basic)).toEqual([]);
  });

  it('reads JSON as it reads YAML', () => {
    const text = JSON.stringify({
      format: 1,
      api: 'shop',
      auth: 'none',
      quota: '5/s per key',
      lists: { orders: { path: '/orders', paging: 'none', records: '', key: 'id' } },
    });
    expect(parseDescription(text, 'shop.json').lists[0]).toMatchObject({
      name: 'orders',
      keyCandidates: [['id']],
      paging: 'none',
    });
  });

  it('gives each list the defaults of `list`, and a single read the parameters of its list', () => {
    const [orders, customers] = readDescription(WINE).lists;
    expect(customers).toMatchObject({ records: '/data', limit: 1_000, updated: ['updated_at'] });
    expect(orders!.one).toEqual({
      path: '/v1/orders',
      query: { offset: '{offset}', pageSize: '{limit}', orderNumber: '{key}' },
      record: '/data',
      gone: [404],
      digitsOnly: true,
    });
  });

  it('takes numbered pages for offsets if the requests choose their size, in the path too', () => {
    const pagedBy = (path: string) => {
      const paged = { path, paging: 'page', limit: 50, total: '/total' };
      const lists = { orders: { ...paged, records: '/orders', key: 'id' } };
      const text = JSON.stringify({
        ...{ format: 1, api: 'shop', auth: 'none', quota: '5/s per key' },
        lists,
      });
      return isPagedByOffset(parseDescription(text, 'shop.json').lists[0]!);
    };
    expect(pagedBy('/orders/{limit}/{page}')).toBe(true);
    expect(pagedBy('/orders/{page}')).toBe(false);
  });

  it('names an alias without an anchor, and one inside of its own', () => {
    const aliased = (text: string) => mistakesIn(shop.replace('quota: 2/s per key', text));
    expect(aliased('quota: *nope')).toEqual([
      'shop.yaml:5:8 the YAML alias *nope has no anchor &nope before it',
    ]);
    expect(aliased('quota: &own { limits: [*own] }')).toEqual([
      'shop.yaml:5:24 the YAML alias *own is inside of the value that its anchor &own marks, so that the value would contain itself',
    ]);
    const many = Array.from(
      { length: 12 },
      (_, n) => `x${n}: &x${n} [${`*x${n - 1}, `.repeat(9)}]`,
    );
    const [line] = mistakesIn(`x: &x-1 [1]\n${many.join('\n')}\n`);
    expect(line).toMatch(/^shop\.yaml:1:1 /);
  });

  it('says which file cannot be read', () => {
    expect(() => readDescription('none/shop.yaml')).toThrow(
      "the description none/shop.yaml can't be read (ENOENT)",
    );
  });
});

describe('descriptionInWords', () => {
  it.each(readdirSync(import.meta.dirname).filter((file) => file.endsWith('.yaml')))(
    'tells the requests, proofs and limits of %s',
    async (file) => {
      const words = descriptionInWords(readDescription(join(import.meta.dirname, file)));
      await expect(`${words.join('\n')}\n`).toMatchFileSnapshot(
        file.replace('.yaml', '.words.txt'),
      );
    },
  );

  it.each([
    ['after', 'total: /count', 'a page has no new record, or a page is empty'],
    ['offset', "total: { path: /count, at: '' }", 'a page is empty'],
  ])('names the total as the end of a list only where it is: %s, %s', (paging, total, end) => {
    const text = shop
      .replace('paging: offset', `paging: ${paging}`)
      .replace("'{offset}'", `'{${paging}}'`)
      .replace('total: /count', total);
    const words = descriptionInWords(parseDescription(text, SHOP)).join('\n');
    expect(words).toContain(`  records       /orders; the list ends when ${end}\n`);
  });
});

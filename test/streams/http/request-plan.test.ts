import { describe, expect, it } from 'vitest';
import { listNamed } from '../../../src/description/description.ts';
import { parseDescription } from '../../../src/description/read-description.ts';
import { WINE } from '../../../src/description/wine/wine.ts';
import { RequestPlan } from '../../../src/streams/http/request-plan.ts';
import type { ListQuery } from '../../../src/streams/http/request-plan.ts';

const SHOP = `
format: 1
api: shop
parameters: [shop, version]
headers: { X-Version: '{version}', Accept: application/vnd.shop+json }
auth: none
quota: 100/min per list
list: { paging: offset, limit: 250, records: /items, total: /count, key: id }
lists:
  carts:
    path: /{shop}/carts
    query: { skip: '{offset}', take: '{limit}', status: any }
    dates: { filter: 'changed>{from}' }
    updated: changed
    one: { path: '/{shop}/carts/{key}', gone: [404, 410] }
  gifts:
    path: /gifts/search
    method: POST
    query: { shop: '{shop}' }
    body: { skip: '{offset}', take: '{limit}', sort: [id], shop: 'of {shop}' }
`;
const { lists, headers } = parseDescription(SHOP, 'shop.yaml');
const parameters = { shop: 'a/b', version: '7' };

/** The request of a list of the shop. */
function requestOf(name: string, query: ListQuery) {
  const baseUrl = new URL('https://shop.example/api/');
  const list = listNamed({ lists }, name);
  return new RequestPlan({ baseUrl, list, headers, parameters }).requestOf(query);
}
const addressOf = (name: string, query: ListQuery) => requestOf(name, query).url.href;

describe('RequestPlan', () => {
  it.each<[string, string, ListQuery, string]>([
    ['a page', 'orders', { offset: 20, pageSize: 10 }, 'orders?offset=20&pageSize=10'],
    ['whatever the server gives', 'products', {}, 'products'],
    [
      'a page of a window',
      'orders',
      { offset: 0, pageSize: 10, from: '2026-03-05T12:00:00.000Z', to: '2026-03-07' },
      'orders?modifiedFromDate=2026-03-05T12%3A00%3A00.000Z&modifiedToDate=2026-03-07&offset=0&pageSize=10',
    ],
    [
      'a window without an end',
      'orders',
      { from: '2026-03-05' },
      'orders?modifiedFromDate=2026-03-05',
    ],
    ['a single record', 'orders', { key: '100001' }, 'orders?orderNumber=100001'],
  ])('asks the wine API for %s', (_, name, query, path) => {
    const baseUrl = new URL('https://api.example');
    const plan = new RequestPlan({ baseUrl, list: listNamed(WINE, name) });
    const url = new URL(`https://api.example/v1/${path}`);
    expect(plan.requestOf(query)).toEqual({ method: 'GET', url, headers: {} });
    expect(plan.url.href).toBe(`https://api.example/v1/${name}`);
  });

  it('fills paths, parameters and headers in, each in its own encoding', () => {
    const page = requestOf('carts', { offset: 0, pageSize: 5 });
    expect(page.url.href).toBe('https://shop.example/api/a%2Fb/carts?skip=0&take=5&status=any');
    expect(page.headers).toEqual({ 'x-version': '7', accept: 'application/vnd.shop+json' });
    expect(addressOf('carts', { from: '5' })).toBe(
      'https://shop.example/api/a%2Fb/carts?filter=changed%3E5&status=any',
    );
    expect(addressOf('carts', { key: 'x?y' })).toBe('https://shop.example/api/a%2Fb/carts/x%3Fy');
  });

  it('sends a body with numbers as numbers, and without what has no value', () => {
    const { method, url, body, headers: sent } = requestOf('gifts', { offset: 40, pageSize: 20 });
    expect([method, url.href]).toEqual([
      'POST',
      'https://shop.example/api/gifts/search?shop=a%2Fb',
    ]);
    expect(JSON.parse(body!)).toEqual({ skip: 40, take: 20, sort: ['id'], shop: 'of a/b' });
    expect(JSON.parse(requestOf('gifts', {}).body!)).toEqual({ sort: ['id'], shop: 'of a/b' });
    expect(sent).toMatchObject({ 'content-type': 'application/json', 'x-version': '7' });
  });

  it('refuses a single read of a list that has none, and a path whose parameter has no value', () => {
    expect(() => requestOf('gifts', { key: '1' })).toThrow(
      /the list gifts of the description has no `one`/,
    );
    const baseUrl = new URL('https://shop.example');
    const list = listNamed({ lists }, 'carts');
    expect(() => new RequestPlan({ baseUrl, list })).toThrow(/has a variable without a value/);
  });
});

import { firstValueFrom } from 'rxjs';
import { expect, it, onTestFinished } from 'vitest';
import { checkPaging } from '../../src/commands/check-paging.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import { withFault } from '../../src/sandbox/named-faults.ts';
import type { SandboxOptions } from '../../src/sandbox/options.ts';
import { listRequest } from '../../src/streams/decode/list-request.ts';
import { PagePlan } from '../../src/streams/http/page-plan.ts';
import type { PagePlace } from '../../src/streams/http/page-plan.ts';
import { keyOfFields } from '../../src/streams/records/key-of.ts';
import { hurriedTime } from '../support/hurried-time.ts';
import { liveTokens } from '../sandbox/live-tokens.ts';

const PAGE_SIZE = 100;
const MOVED = /refuses or changes an offset that is not a multiple of pageSize/;
const CAPPED = /returns at most 50 records a page, although PAGE_SIZE is 100/;

/** The findings of `check` about the paging of a sandbox's orders with these faults, and the pages that it asked for beside the first. */
async function checked(orders: number, ...faults: readonly string[]) {
  const plain: SandboxOptions = { quotaPerMinute: 10_000, records: { orders } };
  const sandbox = await startSandbox(faults.reduce(withFault, plain));
  onTestFinished(() => sandbox.close());
  const { dispatcher, listOf, tokens, unlimited } = liveTokens(sandbox);
  const keyFields = ['order_number'];
  const plan = new PagePlan();
  const list = listRequest({
    plan,
    ...listOf('orders'),
    tokens,
    dispatcher,
    scheduler: hurriedTime().scheduler, // a page that fails is tried for five seconds and more, and split
    keyOf: keyOfFields(keyFields),
  });
  const asked: PagePlace[] = [];
  const ask = (place: PagePlace) => {
    asked.push(place);
    return firstValueFrom(list(place, unlimited));
  };
  const first = await firstValueFrom(list({ offset: 0, pageSize: PAGE_SIZE }, unlimited));
  const found = await checkPaging(first, ask, { pageSize: PAGE_SIZE, keyFields, plan });
  return { found, asked };
}

it('check asks for one more page of a list that pages as described, and has nothing to say', async () => {
  expect(await checked(230)).toEqual({ found: [], asked: [{ offset: 3, pageSize: PAGE_SIZE }] });
});

it.each<[symptom: string, faults: readonly string[], texts: readonly RegExp[]]>([
  ['offsets are rounded down to a whole page', ['offset-rounded'], [MOVED]],
  ['offsets are rounded to the nearest page', ['offset-nearest'], [MOVED]],
  ['offsets are rounded and the request is echoed', ['offset-rounded', 'offset-echoed'], [MOVED]],
  ['offsets within a page are refused with 400', ['offset-multiple-only'], [MOVED]],
  ['the page size is capped', ['page-capped=50'], [CAPPED]],
  ['the page size is ignored', ['page-fixed=50'], [CAPPED]],
  [
    'the page size is capped and offsets are rounded',
    ['page-capped=50', 'offset-rounded'],
    [MOVED, CAPPED],
  ],
  ['large pages are answered with 504', ['large-page-504=50'], [CAPPED]],
  ['an offset behind the end wraps to the first page', ['offset-wraps'], []],
  ['the pagination is written loosely', ['pagination-loose'], []],
])('check says what run will do where %s', async (_, faults, texts) => {
  const { found } = await checked(230, ...faults);
  expect(found).toEqual(texts.map((text) => expect.stringMatching(text) as string));
});

it.each([
  ['has hardly a record', 3, []],
  ['tells no total', 230, ['total-missing']],
])('check asks for no other page of a list that %s', async (_, orders, faults) => {
  expect(await checked(orders, ...faults)).toEqual({ found: [], asked: [] });
});

it('check takes a list that ends within the page for whole, however few its records are', async () => {
  expect((await checked(40, 'page-capped=50')).found).toEqual([]);
});

import { createHash } from 'node:crypto';
import { firstValueFrom } from 'rxjs';
import { expect, it } from 'vitest';
import { parsingDecoder } from '../../../src/streams/decode/decoder.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { MASK, personalFields } from '../../../src/streams/records/personal-fields.ts';
import { jsonsOf } from '../../support/records.ts';
import { pageText, requestOf } from './text-list.ts';
import type { ListOptions } from './text-list.ts';

/** The answer to a request for a page of a list of these texts. */
const asked = (texts: readonly string[], options: Partial<ListOptions>) => {
  const { list } = requestOf((offset, pageSize) => pageText(texts, offset, pageSize), options);
  return firstValueFrom(list({ offset: 0, pageSize: 10 }, (source) => source));
};

it('hides in every element of data, before anybody but the look sees it', async () => {
  const looked: unknown[] = [];
  const { hide } = personalFields([{ path: ['email'], method: 'mask' }]);
  const { data, total, hasNext } = await asked(['{"id":1,"email":"j@x"}', '"j@x"'], {
    decode: parsingDecoder(keyOfFields(['id'])),
    hide,
    inspect: ({ data }, query) => looked.push(jsonsOf(data), query),
  });
  expect(jsonsOf(data)).toEqual([{ id: 1, email: MASK }, MASK]);
  expect(data.map(({ key }) => key)).toEqual(['1', undefined]);
  expect([total, hasNext]).toEqual([2, false]);
  expect(looked).toEqual([[{ id: 1, email: 'j@x' }, 'j@x'], { offset: 0, pageSize: 10 }]);
});

it('leaves of an element that is no JSON its length and its SHA-256', async () => {
  const text = '{"email":"jane@exämple.com",}';
  const { hide } = personalFields([{ path: ['notes'], method: 'drop' }]);
  const { data } = await asked(['{"id":1}', text, '{"id":2}'], { hide });
  const sha256 = createHash('sha256').update(text).digest('hex');
  expect(jsonsOf(data)[1]).toEqual(JSON.stringify({ sha256, length: 30 }));
  expect(data[1]).toMatchObject({ unreadableAt: 1 });
});

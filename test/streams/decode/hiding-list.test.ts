import { createHash } from 'node:crypto';
import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { hidingList } from '../../../src/streams/decode/hiding-list.ts';
import { keyOfFields } from '../../../src/streams/records/key-of.ts';
import { MASK, personalFields } from '../../../src/streams/records/personal-fields.ts';
import type { ListRequest } from '../../../src/streams/decode/answer.ts';
import { PageRecord } from '../../../src/streams/records/page-record.ts';
import { jsonsOf, records } from '../../support/records.ts';

describe('hidingList', () => {
  it('hides in every element of data, before anybody sees the answer', async () => {
    const span = { begin: 1, end: 2 };
    const pagination = { total_records: 2, has_next_page: false };
    const data = records([{ id: 1, email: 'j@x' }, 'j@x'], keyOfFields(['id']));
    const request: ListRequest = () => of({ data, pagination, span, serverTime: 5 });
    const asked = (list: ListRequest) => firstValueFrom(list({}, (source) => source));
    const masked = personalFields([{ path: ['email'], way: 'mask' }]);
    const { data: hidden, ...rest } = await asked(hidingList(request, masked));
    expect(rest).toEqual({ pagination, span, serverTime: 5 });
    expect(jsonsOf(hidden)).toEqual([{ id: 1, email: MASK }, MASK]);
    expect(hidden.map(({ key }) => key)).toEqual(['1', undefined]);
    expect(hidingList(request)).toBe(request);
  });

  it('leaves of an element that is no JSON its length and its SHA-256', async () => {
    const text = '{"email":"jane@exämple.com",}';
    const answer = {
      pagination: { total_records: 1, has_next_page: false },
      span: { begin: 1, end: 2 },
      serverTime: 5,
    };
    const request: ListRequest = () => of({ ...answer, data: [PageRecord.unreadable(text, 7)] });
    const hidden = hidingList(request, personalFields([{ path: ['notes'], way: 'drop' }]));
    const { data } = await firstValueFrom(hidden({}, (source) => source));
    const sha256 = createHash('sha256').update(text).digest('hex');
    expect(jsonsOf(data)).toEqual([JSON.stringify({ sha256, length: 30 })]);
    expect(data).toMatchObject([{ unreadableAt: 7 }]);
  });
});

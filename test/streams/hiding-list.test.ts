import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { hidingList } from '../../src/streams/hiding-list.ts';
import { MASK, personalFields } from '../../src/streams/personal-fields.ts';
import type { ListRequest } from '../../src/streams/request.ts';

describe('hidingList', () => {
  it('hides in every element of data, before anybody sees the answer', async () => {
    const span = { begin: 1, end: 2 };
    const pagination = { total_records: 2, has_next_page: false };
    const data = [{ id: 1, email: 'j@x' }, 'j@x'];
    const request: ListRequest = () => of({ data, pagination, span, serverTime: 5 });
    const asked = (list: ListRequest) => firstValueFrom(list({}, (source) => source));
    expect(
      await asked(hidingList(request, personalFields([{ path: ['email'], way: 'mask' }]))),
    ).toEqual({
      ...{ pagination, span, serverTime: 5 },
      data: [{ id: 1, email: MASK }, MASK],
    });
    expect(hidingList(request)).toBe(request);
  });
});

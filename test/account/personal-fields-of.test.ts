import { describe, expect, it } from 'vitest';
import type { PiiConfig } from '../../src/config/config.ts';
import {
  hiddenNames,
  namedFields,
  personalFieldsOf,
} from '../../src/account/personal-fields-of.ts';
import { Secret } from '../../src/core/secret.ts';

const pii: PiiConfig = {
  drop: [{ resource: 'orders', path: ['tender_info', 'last_four'] }],
  mask: [{ resource: 'orders', path: ['phone'] }],
  hmac: [{ resource: 'customers', path: ['email'] }],
  hmacKey: new Secret('a key that nobody guesses'),
};
const record = { email: 'j@x', phone: '1', tender_info: [{}, { last_four: '2' }] };

describe('the personal fields of a list', () => {
  it('are those that the settings name of it, each in its way', () => {
    expect(personalFieldsOf(pii, 'orders')!.hide(record)).toEqual({
      ...record,
      phone: '***',
      tender_info: [{}, {}],
    });
    expect(personalFieldsOf(pii, 'customers')!.hide(record)).toEqual({
      ...record,
      email: expect.stringMatching(/^hmac-sha256:[0-9a-f]{64}$/),
    });
  });

  it('may be none', () => {
    expect(personalFieldsOf(pii, 'products')).toBeUndefined();
    expect(namedFields(pii, 'products', [record])).toEqual([]);
  });

  it('are parts of fields that can make no key', () => {
    expect([...hiddenNames(pii, 'orders')]).toEqual(['tender_info', 'phone']);
  });

  it('are told by name, and whether they are there', () => {
    const seen = (...data: Parameters<typeof namedFields>[2]) => namedFields(pii, 'orders', data);
    const names = ['tender_info.last_four', 'phone'];
    expect(seen({ id: 1 }, record, 7)).toEqual(names.map((name) => ({ name, isSeen: true })));
    expect(seen({ id: 1, phone: null })).toEqual([
      { name: 'tender_info.last_four', isSeen: false },
      { name: 'phone', isSeen: true },
    ]);
    expect(seen(7, 'text')).toEqual(names.map((name) => ({ name, isSeen: false })));
  });
});

import { describe, expect, it } from 'vitest';
import {
  SHARED_QUOTA,
  latestArrivalsIn,
  quotaDeclarationsIn,
  ledgerText,
  LOGIN_QUOTA,
  parseLedger,
} from '../../../src/account/ledger/ledger-record.ts';
import type { LedgerDeclaration } from '../../../src/account/ledger/ledger-record.ts';

const declared = (more: number) => ({
  used: [
    [400, 3],
    [1_400, 2],
  ] as const,
  underWay: 1,
  more,
});
const record: LedgerDeclaration = {
  instance: 'a',
  writers: ['z', 'a'],
  blockMs: 11_000,
  quotas: { [LOGIN_QUOTA]: declared(1), orders: declared(20), products: declared(7) },
};

describe('an entry of the ledger', () => {
  it('is what it was written as', () => {
    expect(parseLedger(ledgerText(record))).toEqual(record);
    const keyed = { ...record, key: '0123456789ab' };
    expect(parseLedger(ledgerText(keyed))).toEqual(keyed);
    const claim = { instance: 'b', claim: true, number: 2 } as const;
    expect(parseLedger(ledgerText(claim))).toEqual(claim);
  });

  it.each([
    ['no JSON', '{'],
    ['another version', ledgerText(record).replace('"version":1', '"version":2')],
    ['no count', ledgerText(record).replace('"more":20', '"more":"20"')],
    ['a count below 0', ledgerText(record).replace('"more":20', '"more":-20')],
    ['nobody', ledgerText(record).replace('"instance":"a",', '')],
    ['a time that is none', ledgerText(record).replace('[400,3]', '[null,3]')],
    ['a list', '[]'],
  ])('that is %s is none', (_, text) => {
    expect(parseLedger(text)).toBeUndefined();
  });

  it('counts what may still come by the latest time at which it can arrive', () => {
    const latestSentAt = 100_000;
    expect(latestArrivalsIn('orders', { declaration: record, latestSentAt })).toEqual([
      { at: 99_600, count: 3 },
      { at: 98_600, count: 2 },
      { at: 112_000, count: 21 }, // on its way for a second behind the block
    ]);
    const none = { ...record, quotas: { orders: { used: [], underWay: 0, more: 0 } } };
    expect(latestArrivalsIn('orders', { declaration: none, latestSentAt })).toEqual([]);
  });

  it('counts for a list what was asked of it, and for all of them what was asked of any', () => {
    const mores = (name: string, of = record) =>
      quotaDeclarationsIn(name, of).map(({ more }) => more);
    expect(mores('orders')).toEqual([20]);
    expect(mores(SHARED_QUOTA)).toEqual([20, 7]);
    expect(mores(LOGIN_QUOTA)).toEqual([1]);
    expect(mores('customers')).toEqual([]);
    const shared = {
      ...record,
      quotas: { [LOGIN_QUOTA]: declared(1), [SHARED_QUOTA]: declared(50) },
    };
    expect(mores('orders', shared)).toEqual([50]);
    expect(mores(LOGIN_QUOTA, shared)).toEqual([1]);
    // Each request is declared for both: no one is counted twice.
    const both = {
      ...record,
      quotas: { [LOGIN_QUOTA]: declared(1), [SHARED_QUOTA]: declared(50), orders: declared(20) },
    };
    expect(mores('orders', both)).toEqual([20]);
    expect(mores(SHARED_QUOTA, both)).toEqual([50]);
    expect(mores('products', both)).toEqual([50]);
  });
});

import { describe, expect, it } from 'vitest';
import { chooseKeyFields } from '../../../src/streams/records/records.ts';

const CANDIDATES = [['id'], ['sku', 'location'], ['sku']];

describe('chooseKeyFields', () => {
  it('takes the first candidate that every record has, with a value of its own', () => {
    const choice = (data: object[]) => chooseKeyFields(data as [], CANDIDATES);
    expect(
      choice([
        { id: 1, sku: 'a' },
        { id: 2, sku: 'b' },
      ]),
    ).toEqual({ fields: ['id'] });
    expect(choice([{ id: 1, sku: 'a' }, { sku: 'b' }])).toEqual({ fields: ['sku'] });
    expect(choice([{ id: 1 }, { sku: 'b' }])).toMatchObject({ fields: undefined });
    expect(
      choice([
        { id: 1, sku: 'a' },
        { id: 1, sku: 'b' },
      ]),
    ).toEqual({ fields: ['sku'] });
    const places = [
      { sku: 'a', location: 'x' },
      { sku: 'a', location: 'y' },
    ];
    expect(choice(places)).toEqual({ fields: ['sku', 'location'] });
  });

  it('lets a tenth of the records go without, and a fifth where no candidate fits otherwise', () => {
    const page = (without: number) =>
      Array.from({ length: 10 }, (_, id) => (id < without ? { name: 'x' } : { id }));
    expect(chooseKeyFields(page(2), CANDIDATES)).toEqual({ fields: ['id'] });
    expect(chooseKeyFields(page(3), CANDIDATES)).toMatchObject({ fields: undefined });
    const withSku = (without: number) =>
      page(without).map((record, n) => ({ ...record, sku: `s${n}` }));
    expect(chooseKeyFields(withSku(1), CANDIDATES)).toEqual({ fields: ['id'] });
    expect(chooseKeyFields(withSku(2), CANDIDATES)).toEqual({ fields: ['sku'] });
    const conflict = [...page(0), { id: 1, name: 'another' }];
    expect(chooseKeyFields(conflict, CANDIDATES)).toMatchObject({ fields: undefined });
  });

  it('takes no record that comes twice, unchanged, for two with one key', () => {
    const again = [{ id: 1, sku: 'a' }, { id: 2 }, { sku: 'a', id: 1 }];
    expect(chooseKeyFields(again, CANDIDATES)).toEqual({ fields: ['id'] });
    expect(chooseKeyFields([...again, { id: 2, sku: null }], CANDIDATES)).toEqual({
      fields: undefined,
      seen: ['id', 'sku'],
    });
  });

  it('does not take a field for a key whose values are no keys', () => {
    for (const odd of [null, '', 1.5, true, {}, []]) {
      expect(chooseKeyFields([{ id: odd, sku: 'a' }], CANDIDATES)).toEqual({ fields: ['sku'] });
    }
  });

  it('names the fields it has seen when none fits', () => {
    const data = [
      { name: 'x', id: 1 },
      { size: 2, id: 1 },
    ];
    expect(chooseKeyFields(data, CANDIDATES)).toEqual({
      fields: undefined,
      seen: ['id', 'name', 'size'],
    });
  });

  it('says nothing of a page without records, and passes over what is no object', () => {
    expect(chooseKeyFields([], CANDIDATES)).toBeUndefined();
    expect(chooseKeyFields([null, 7], CANDIDATES)).toBeUndefined();
    expect(chooseKeyFields([null, { id: 1 }], CANDIDATES)).toEqual({ fields: ['id'] });
  });
});

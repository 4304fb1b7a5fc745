import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RESOURCES } from '../../src/resources/resources.ts';
import { transactionalIds } from '../../src/pipeline/transactional-id.ts';

const name = fc
  .array(fc.constantFrom('a', 'b', '.', '-', '_', 'orders'), { minLength: 1, maxLength: 5 })
  .map((parts) => parts.join(''));
const task = fc.tuple(name, name, fc.constantFrom(...RESOURCES));

it('two accounts whose names come to one text have ids of their own', () => {
  const [one, other] = [
    transactionalIds('wine', 'eu.main', 'orders'),
    transactionalIds('wine.eu', 'main', 'orders'),
  ];
  expect(one.formerId).toBe('cellarstream.wine.eu.main.orders');
  expect(other.formerId).toBe(one.formerId);
  expect([one, other].map(({ transactionalId }) => transactionalId)).toEqual([
    'cellarstream.wine.orders/eu.main',
    'cellarstream.wine.eu.orders/main',
  ]);
});

it('names without dots have the id that they have always had', () => {
  const ids = { transactionalId: 'cellarstream.wine.default.wine-clubs' };
  expect(transactionalIds('wine', 'default', 'wine-clubs')).toEqual(ids);
});

it('no two tasks have one id, nor does one have what another was called before', () => {
  fc.assert(
    fc.property(task, task, (one, other) => {
      fc.pre(one.join(' ') !== other.join(' '));
      const [{ transactionalId }, ids] = [transactionalIds(...one), transactionalIds(...other)];
      expect(Object.values(ids)).not.toContain(transactionalId);
    }),
    { numRuns: 2_000 },
  );
});

it('ACLs by prefix allow each of them', () => {
  fc.assert(
    fc.property(task, ([prefix, ...rest]) => {
      const ids = Object.values(transactionalIds(prefix, ...rest)) as string[];
      expect(ids.filter((id) => !id.startsWith(`cellarstream.${prefix}.`))).toEqual([]);
    }),
  );
});

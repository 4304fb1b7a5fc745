import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RESOURCES } from '../../src/sandbox/resources.ts';
import { transactionalId } from '../../src/pipeline/task.ts';

const name = fc
  .array(fc.constantFrom('a', 'b', '.', '-', '_', 'orders'), { minLength: 1, maxLength: 5 })
  .map((parts) => parts.join(''));
const task = fc.tuple(name, name, fc.constantFrom(...RESOURCES));

it('two accounts whose names come to one text have ids of their own', () => {
  expect(transactionalId('wine', 'eu.main', 'orders')).toBe('cellarstream.wine.orders/eu.main');
  expect(transactionalId('wine.eu', 'main', 'orders')).toBe('cellarstream.wine.eu.orders/main');
});

it('names without dots have dots between them', () => {
  const id = 'cellarstream.wine.default.wine-clubs';
  expect(transactionalId('wine', 'default', 'wine-clubs')).toBe(id);
});

it('no two tasks have one id', () => {
  fc.assert(
    fc.property(task, task, (one, other) => {
      fc.pre(one.join(' ') !== other.join(' '));
      expect(transactionalId(...one)).not.toBe(transactionalId(...other));
    }),
    { numRuns: 2_000 },
  );
});

it('ACLs by prefix allow each of them', () => {
  fc.assert(
    fc.property(task, ([prefix, ...rest]) => {
      expect(transactionalId(prefix, ...rest).startsWith(`cellarstream.${prefix}.`)).toBe(true);
    }),
  );
});

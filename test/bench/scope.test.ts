import { expect, it } from 'vitest';
import { Scope } from '../../bench/support/scope.mjs';

it('ends what it was given, the newest first and each once, whatever fails', async () => {
  const ended: string[] = [];
  const scope = new Scope();
  scope.add(() => ended.push('first'));
  scope.add(() => Promise.reject(new Error('no')));
  scope.inner().add(() => ended.push('within'));
  const end = scope.add(() => ended.push('last'));
  await end();
  await expect(scope.close()).rejects.toThrow('no');
  await end();
  await scope.close();
  expect(ended).toEqual(['last', 'within', 'first']);
});

it('starts nothing any more once it is closed', async () => {
  const scope = new Scope();
  await scope.close();
  let isEnded = false;
  expect(() => scope.add(() => (isEnded = true))).toThrow();
  expect(isEnded).toBe(true);
  expect(() => scope.inner()).toThrow();
});

import { describe, expect, it } from 'vitest';
import { parseOptions, UsageError } from '../../bench/support/options.mjs';

const ROWS = ['quota', 'cpu-new'];
const parsed = (...args: string[]) => parseOptions(args, ROWS);

it('without arguments: all rows, three runs; two of the short form', () => {
  expect(parsed()).toMatchObject({ runs: 3, short: false, check: false, only: undefined });
  expect(parsed('--short')).toMatchObject({ runs: 2, short: true });
  expect(parsed('--short', '--runs', '5')).toMatchObject({ runs: 5 });
});

it('takes rows by their names', () => {
  expect(parsed('--only', 'quota, cpu-new').only).toEqual(['quota', 'cpu-new']);
});

describe('refuses in one line', () => {
  it.each([
    ['--nix'],
    ['extra'],
    ['--runs'],
    ['--runs', '0'],
    ['--runs', 'many'],
    ['--orders', '5'],
    ['--only', 'quota,nix'],
    ['--against', ''],
    ['--profile', '--against', 'HEAD'],
    ['--check', '--against', 'HEAD'],
  ])('%s %s', (...args) => {
    const refused = () => parsed(...args.filter((arg) => arg !== undefined));
    expect(refused).toThrow(UsageError);
    expect(refused).toThrow(/^[^\n]+$/);
  });
});

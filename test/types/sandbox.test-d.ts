import { expectTypeOf, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { DriftOptions, Sandbox, SandboxAccount } from '../../src/sandbox/index.ts';

it('startSandbox takes known options, and gives a sandbox', () => {
  expectTypeOf(startSandbox({ seed: 7, sort: 'updated-asc' })).toEqualTypeOf<Promise<Sandbox>>();
  // @ts-expect-error no such order
  void startSandbox({ sort: 'price' });
  // @ts-expect-error no such list
  void startSandbox({ records: { wines: 10 } });
});

it('drift and faults take what they document, and give their end', () => {
  expectTypeOf<Sandbox['addField']>().returns.toEqualTypeOf<() => void>();
  expectTypeOf<Sandbox['hide']>().returns.toEqualTypeOf<() => void>();
  expectTypeOf<Sandbox['addField']>().parameter(3).toEqualTypeOf<DriftOptions | undefined>();
  expectTypeOf<Sandbox['convertField']>().toBeCallableWith('inventory', 'cost', String);
  expectTypeOf<Sandbox['loseKey']>().toBeCallableWith('wine-clubs', 1, { touch: false });
  // @ts-expect-error one record is lost, not so many of those there are
  expectTypeOf<Sandbox['loseKey']>().toBeCallableWith('wine-clubs', 1, { existing: 2 });
  expectTypeOf<Sandbox['fault']>().toBeCallableWith({ kind: 'repeat', records: 2, patch: {} });
  expectTypeOf<Sandbox['fault']>().toBeCallableWith({ kind: 'empty', pagination: 'empty' });
  // @ts-expect-error no such pagination
  expectTypeOf<Sandbox['fault']>().toBeCallableWith({ kind: 'empty', pagination: 'none' });
});

it("an account has what a sandbox of one has, but for what is the server's", () => {
  expectTypeOf<Sandbox>().toExtend<SandboxAccount>();
  expectTypeOf<Sandbox['account']>().toEqualTypeOf<(name: string) => SandboxAccount>();
  expectTypeOf<Exclude<keyof Sandbox, keyof SandboxAccount>>().toEqualTypeOf<
    | 'url'
    | 'stagingUrl'
    | 'accounts'
    | 'account'
    | 'faultAll'
    | 'skewClock'
    | 'setLatency'
    | 'down'
    | 'up'
    | 'close'
  >();
});

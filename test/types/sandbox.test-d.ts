import { expectTypeOf, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';

it('startSandbox takes known options, and gives a sandbox', () => {
  expectTypeOf(startSandbox({ seed: 7, sort: 'updated-asc' })).toEqualTypeOf<Promise<Sandbox>>();
  // @ts-expect-error no such order
  void startSandbox({ sort: 'price' });
  // @ts-expect-error no such list
  void startSandbox({ records: { wines: 10 } });
});

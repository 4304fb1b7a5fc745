import { describe, expect, it } from 'vitest';
import { allHooks } from '../../src/observe/all-hooks.ts';

describe('allHooks', () => {
  it('tells each, in their order, what they want to be told', () => {
    const told: string[] = [];
    const hooks = allHooks(
      { onLogin: () => told.push('1 login') },
      { onReady: ({ resource }) => told.push(`2 ${resource}`) },
      {
        onReady: ({ resource }) => told.push(`3 ${resource}`),
        onLogin: () => told.push('3 login'),
      },
    );
    hooks.onLogin?.({ lifeMs: 1_800_000, aheadMs: 0 });
    hooks.onReady?.({ resource: 'orders' });
    expect(told).toEqual(['1 login', '3 login', '2 orders', '3 orders']);
    expect(hooks.onFailed).toBeUndefined();
  });
});

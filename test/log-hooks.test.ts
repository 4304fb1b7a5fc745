import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { logHooks } from '../src/commands/log-hooks.ts';
import type { Logger } from '../src/log.ts';

describe('logHooks', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('says that a list does not add up every ten minutes, each trouble of each list by itself', () => {
    const lines: string[] = [];
    const at = (level: string) => (fields: { resource: string; trouble: string }) =>
      lines.push(`${level} ${fields.resource} ${fields.trouble}`);
    const logger = { warn: at('warn'), debug: at('debug') } as unknown as Logger;
    const { onTrouble } = logHooks(logger);
    onTrouble({ resource: 'orders', trouble: 'short', offset: 0 });
    onTrouble({ resource: 'orders', trouble: 'short', offset: 0 });
    onTrouble({ resource: 'orders', trouble: 'unsettled', offset: 0 });
    onTrouble({ resource: 'products', trouble: 'short', offset: 0 });
    onTrouble({ resource: 'orders', trouble: 'stepped-back', offset: 0 });
    vi.advanceTimersByTime(600_000);
    onTrouble({ resource: 'orders', trouble: 'short', offset: 0 });
    expect(lines).toEqual([
      'warn orders short',
      'debug orders short',
      'warn orders unsettled',
      'warn products short',
      'debug orders stepped-back',
      'warn orders short',
    ]);
  });
});

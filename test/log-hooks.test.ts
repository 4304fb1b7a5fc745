import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { logHooks } from '../src/commands/log-hooks.ts';
import type { Logger } from '../src/log.ts';
import type { Proof } from '../src/streams/sweep-progress.ts';

describe('logHooks', () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('says how far a first read is every ten seconds, each list by itself, and its end at once', () => {
    const lines: string[] = [];
    const info = ({ resource, read }: { resource: string; read: number }) =>
      lines.push(`${resource} ${read}`);
    const { onProgress } = logHooks({ info } as unknown as Logger);
    const progress = (resource: 'orders' | 'products', read: number) =>
      onProgress({ resource, read, total: 5, done: read === 5 });
    progress('orders', 1);
    progress('orders', 2);
    progress('products', 2);
    vi.advanceTimersByTime(9_999);
    progress('orders', 3);
    vi.advanceTimersByTime(1);
    progress('orders', 4);
    progress('orders', 5);
    expect(lines).toEqual(['orders 1', 'products 2', 'orders 4', 'orders 5']);
  });

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

  it('says that deletions of a list can not be told when no sweep proves anything for ten minutes', () => {
    const said: string[] = [];
    const warn = ({ event, resource }: { event: string; resource: string }) =>
      said.push(`${event} ${resource}`);
    const { onSwept } = logHooks({ warn, debug: () => undefined } as unknown as Logger);
    const sweep = (resource: string, proof: Proof, canBeAsked = false) =>
      onSwept({ resource, number: 1, records: 9, proof, canBeAsked });
    const rounds = (minutes: number, work: () => void) => {
      for (let n = 0; n < minutes; n++, vi.advanceTimersByTime(60_000)) work();
    };
    rounds(9, () => sweep('customers', 'complete'));
    sweep('customers', 'exact');
    rounds(9, () => sweep('customers', 'doubtful'));
    rounds(11, () => sweep('orders', 'doubtful', true));
    expect(said).toEqual([]);
    rounds(1, () => sweep('customers', 'nothing'));
    rounds(11, () => sweep('orders', 'nothing', true));
    expect(said).toEqual(['deletions-unknown customers', 'deletions-unknown orders']);
  });

  it('says what becomes of a request to publish again, and warns unless it is done', () => {
    const lines: unknown[] = [];
    const at = (level: string) => (fields: object, text: string) =>
      lines.push({ level, ...fields, text });
    const { onResync } = logHooks({ info: at('info'), warn: at('warn') } as unknown as Logger);
    const told = { resource: 'orders', id: 'a', events: 0, message: null } as const;
    onResync({ ...told, status: 'begun' });
    onResync({ ...told, status: 'done', events: 7 });
    onResync({ ...told, status: 'failed', message: 'it answered 400' });
    const line = { event: 'resync', resource: 'orders', id: 'a' };
    expect(lines).toEqual([
      { level: 'info', ...line, status: 'begun', events: 0, text: 'a request to publish again is taken up' },
      { level: 'info', ...line, status: 'done', events: 7, text: 'a request to publish again is done' },
      { level: 'warn', ...line, status: 'failed', events: 0, reason: 'it answered 400', text: 'a request to publish again is failed' },
    ]); // prettier-ignore
  });
});

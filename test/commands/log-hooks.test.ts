import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { fleetAccountLogHooks, logHooks } from '../../src/commands/log-hooks.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { Lane } from '../../src/observe/hooks.ts';
import type { ReadingLevel } from '../../src/schemas/events/certificate.ts';
import type { Change, Operation } from '../../src/streams/diff/change.ts';
import type { Proof } from '../../src/streams/paging/sweep-progress.ts';
import { lineLogger } from '../support/line-logger.ts';

const INSTANT = Date.parse('2026-01-01T00:00:00Z');

function change(op: Operation): Change {
  const images = { before: null, after: null };
  return { key: '1', op, before: null, after: null, images, changed: [], updatedAt: null };
}

describe('logHooks', () => {
  beforeEach(
    () => void vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'clearInterval'] }),
  );
  afterEach(() => void vi.useRealTimers());

  it('says how far an initial snapshot is every ten seconds, each list by itself, and its end at once', () => {
    const lines: string[] = [];
    const info = ({ resource, read }: { resource: string; read: number }) =>
      lines.push(`${resource} ${read}`);
    const { onProgress } = logHooks(lineLogger({ info }));
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

  it('names fields that differ in every answer, and tells a volatile field that is unseen from a personal one', () => {
    const lines: object[] = [];
    const { onVolatile, onUnseen } = logHooks(
      lineLogger({
        warn: (line: object) => lines.push(line),
      }),
    );
    onVolatile({ resource: 'products', fields: ['/seen'] });
    onUnseen({ resource: 'products', field: '/sene' });
    onUnseen({ resource: 'products', field: 'emial' });
    expect(lines).toEqual([
      { event: 'volatile-fields', resource: 'products', fields: ['/seen'] },
      { event: 'volatile-unseen', resource: 'products', field: '/sene' },
      { event: 'pii-unseen', resource: 'products', field: 'emial' },
    ]);
  });

  it('warns of dates that are not read as written, and says when they are again', () => {
    const lines: string[] = [];
    const at = (level: string) => (fields: { event: string; offsetMs: number }, text: string) =>
      lines.push(`${level} ${fields.event} ${fields.offsetMs} ${text}`);
    const { onDates } = logHooks(lineLogger({ warn: at('warn'), info: at('info') }));
    const found = {
      ...{ parameter: 'modifiedFromDate', stamp: 'updated_at', form: 'no modifiedToDate' },
      ...{ longestMs: 2 * 86_400_000, noDates: null },
    };
    onDates({ ...found, resource: 'orders', isUsualForm: false, offsetMs: 0 });
    onDates({ ...found, resource: 'orders', isUsualForm: true, longestMs: null, offsetMs: 0 });
    expect(lines).toEqual([
      'warn dates 0 the list refuses or misreads the usual dates, so requests have no modifiedToDate; windows of more than 2 days are read in parts',
      'info dates 0 modification dates work as documented again',
    ]);
  });

  it('says that a list does not add up every ten minutes, each trouble of each list by itself', () => {
    const lines: string[] = [];
    const at = (level: string) => (fields: { resource: string; trouble: string }) =>
      lines.push(`${level} ${fields.resource} ${fields.trouble}`);
    const logger = lineLogger({ warn: at('warn'), debug: at('debug') });
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

  it('names the total of the list in texts about scans', () => {
    const texts: string[] = [];
    const lists = [
      ...WINE.lists,
      { ...WINE.lists[0]!, name: 'bottles', total: { header: 'X-Total-Count' } },
      { ...WINE.lists[0]!, name: 'tags', total: undefined },
    ];
    const logger = lineLogger({ warn: (_, text) => texts.push(text) });
    const { onTrouble } = logHooks(logger, lists);
    for (const resource of ['orders', 'bottles', 'tags'])
      onTrouble({ resource, trouble: 'short', offset: 0 });
    expect(texts.map((text) => text.split(' match ')[1])).toEqual([
      'total_records',
      'X-Total-Count',
      'the total',
    ]);
  });

  it('says that deletions of a list can not be told when no sweep proves anything for ten minutes', () => {
    const said: string[] = [];
    const warn = ({ event, resource }: { event: string; resource: string }) =>
      said.push(`${event} ${resource}`);
    const { onSwept } = logHooks(lineLogger({ warn }));
    const sweep = (resource: string, proof: Proof, canBeAsked = false) =>
      onSwept({ resource, number: 1, records: 9, proof, level: null, canProve: true, canBeAsked });
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

  it('says the level of a sweep in words, and once where the list allows no proof of deletions', () => {
    const said: string[] = [];
    const say = ({ event }: { event: string }, text: string) => said.push(`${event}: ${text}`);
    const { onSwept } = logHooks(lineLogger({ debug: say, info: say, warn: say }));
    const sweep = (level: ReadingLevel, canProve: boolean) =>
      onSwept({
        ...{ resource: 'orders', number: 1, records: 9, proof: 'complete', level, canProve },
        canBeAsked: false,
      });
    sweep('agreed', true);
    expect(said).toEqual(['swept: sweep completed: agreed (two full scans have the same keys)']);
    said.length = 0;
    for (let n = 0; n < 30; n++, vi.advanceTimersByTime(60_000)) sweep('read', false);
    expect(said.filter((line) => !line.startsWith('swept: sweep completed: read (to'))).toEqual([
      expect.stringMatching(/^level: records that are missing from this list are not published/),
    ]);
  });

  it('says once a minute what was read and published, and of how many seconds', () => {
    const lines: unknown[] = [];
    const info = (fields: object) => lines.push(fields);
    const { onPublished } = logHooks(lineLogger({ info }));
    const page = (lane: Lane, ...changes: Operation[]) =>
      onPublished({
        resource: 'orders',
        lane,
        changes: changes.map(change),
        statusChanges: [],
        unchanged: 2,
        known: 9,
        at: INSTANT,
        completes: true,
      });
    page('poll', 'c', 'd');
    vi.advanceTimersByTime(3_600_000);
    page('resync', 'u', 'r', 'r');
    const line = { event: 'published', resource: 'orders', statusChanges: 0 };
    expect(lines).toEqual([{ ...line, seconds: 3_600, records: 6, events: 5 }]);
  });

  it('says that deletions are held every ten minutes, and when it is another number of them', () => {
    const lines: string[] = [];
    const error = ({ resource, gone }: { resource: string; gone: number }) =>
      lines.push(`${resource} ${gone}`);
    const { onHeld } = logHooks(lineLogger({ error }));
    const held = (resource: string, gone: number) =>
      onHeld({ resource, gone, known: 200, limitPercent: 5 });
    for (let sweep = 0; sweep < 100; sweep += 1) held('inventory', 60);
    held('products', 60);
    held('inventory', 61);
    expect(lines).toEqual(['inventory 60', 'products 60', 'inventory 61']);
    vi.advanceTimersByTime(599_999);
    held('inventory', 61);
    vi.advanceTimersByTime(1);
    held('inventory', 61);
    expect(lines.slice(3)).toEqual(['inventory 61']);
  });

  it('says the first of bad records at once, and then every ten seconds how many there were', () => {
    const lines: unknown[] = [];
    const warn = (fields: object) => lines.push(fields);
    const { onRejected, onRefused } = logHooks(lineLogger({ warn }));
    for (let offset = 0; offset < 60_000; offset += 1)
      onRejected({ resource: 'products', reason: 'no-key', offset });
    onRejected({ resource: 'products', reason: 'too-large', offset: 7 });
    const line = { event: 'dead-letter', resource: 'products', reason: 'no-key' };
    expect(lines.splice(0)).toEqual([
      { ...line, offset: 0, count: 1 },
      { ...line, reason: 'too-large', offset: 7, count: 1 },
    ]);
    vi.advanceTimersByTime(10_000);
    expect(lines.splice(0)).toEqual([{ ...line, offset: 59_999, count: 59_999 }]);
    vi.advanceTimersByTime(10_000); // nothing came, so the next one is a first again
    onRejected({ resource: 'products', reason: 'no-key', offset: 3 });
    expect(lines.splice(0)).toEqual([{ ...line, offset: 3, count: 1 }]);

    const error = new CellarstreamError('API_STATUS', '403');
    for (let nth = 0; nth < 35; nth += 1) onRefused({ resource: 'orders', error });
    vi.advanceTimersByTime(10_000);
    const refused = { event: 'refused', resource: 'orders', err: error };
    expect(lines).toEqual([
      { ...refused, count: 1 },
      { ...refused, count: 34 },
    ]);
  });

  it('says when another instance was at a resource just now', () => {
    const lines: unknown[] = [];
    const warn = (fields: object) => lines.push(fields);
    logHooks(lineLogger({ warn })).onTakenOver({ resource: 'orders' });
    expect(lines).toEqual([{ event: 'taken-over', resource: 'orders' }]);
  });

  it('says of a takeover in a fleet that it happens, and all else as for a service of its own', () => {
    const [info, warn]: string[][] = [[], []];
    const logger = lineLogger({
      info: (_, text) => info!.push(text),
      warn: (_, text) => warn!.push(text),
    });
    const hooks = fleetAccountLogHooks(logger, WINE.lists);
    hooks.onTakenOver?.({ resource: 'orders' });
    hooks.onClockSetBack?.({ backMs: 1 });
    expect([info!.length, warn!.length]).toEqual([1, 1]);
    expect(info![0]).not.toContain('one instance');
  });

  it('says what becomes of a request to publish again, and warns unless it is done', () => {
    const lines: unknown[] = [];
    const at = (level: string) => (fields: object, text: string) =>
      lines.push({ level, ...fields, text });
    const { onResync } = logHooks(lineLogger({ info: at('info'), warn: at('warn') }));
    const told = { resource: 'orders', id: 'a', events: 0, message: null } as const;
    onResync({ ...told, status: 'begun' });
    onResync({ ...told, status: 'done', events: 7 });
    onResync({ ...told, status: 'failed', message: 'it answered 400' });
    const line = { event: 'resync', resource: 'orders', id: 'a' };
    expect(lines).toEqual([
      {
        level: 'info',
        ...line,
        status: 'begun',
        events: 0,
        text: 'started a resync request',
      },
      {
        level: 'info',
        ...line,
        status: 'done',
        events: 7,
        text: 'resync request: done',
      },
      {
        level: 'warn',
        ...line,
        status: 'failed',
        events: 0,
        reason: 'it answered 400',
        text: 'resync request: failed',
      },
    ]);
  });
});

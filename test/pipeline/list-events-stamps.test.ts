import { lastValueFrom, map, take, timer, toArray } from 'rxjs';
import { expect, it } from 'vitest';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import { SchemaEvolution } from '../../src/pipeline/codec/schema-evolution.ts';
import { listEvents } from '../../src/pipeline/list-events.ts';
import type { JsonValue } from '../../src/schemas/json/json.ts';
import type { Registry } from '../../src/schemas/registry/registry.ts';
import { Confirmations } from '../../src/streams/diff/confirmations.ts';
import type { ListQuery } from '../../src/streams/http/page-request.ts';
import { timeFormat } from '../../src/description/time-format.ts';
import { decoded, FREE_LANES, fakeTask } from '../support/fake-account.ts';
import type { Answering } from '../support/fake-account.ts';
import { fakeCheckpoint, SNAPSHOT_AT } from '../support/fake-checkpoint.ts';

const STEP_MS = 1_000;
const registry: Partial<Registry> = {
  latest: () => Promise.resolve(undefined),
  register: () => Promise.resolve(1),
};

/** Six reads of a list that gets a new record before each request: the first was never modified, the others were. */
async function reads(times: Parameters<typeof timeFormat>[0]) {
  const format = timeFormat(times);
  const shown = (ms: number) => (times === 'epoch-s' ? ms / 1_000 : format.write(ms));
  const queries: ListQuery[] = [];
  const answer: Answering = (query, clock, decode) => {
    queries.push(query);
    const now = SNAPSHOT_AT + queries.length * STEP_MS;
    const record: Record<string, JsonValue> = {
      id: queries.length,
      inserted: shown(queries.length === 1 ? now : now - STEP_MS),
      modified: queries.length === 1 ? null : shown(now),
      updated_at: '2001-01-01T00:00:00.000Z',
    };
    const data = decoded([record], decode);
    const begin = clock.begin();
    return timer(0).pipe(
      map(() => ({
        data,
        total: 1,
        hasNext: false,
        span: clock.answered(begin),
        serverTime: now,
      })),
    );
  };
  const wines = {
    ...listNamed(WINE, 'customers'),
    name: 'wines',
    updated: ['modified', 'inserted'],
    created: 'inserted',
  };
  const evolution = await SchemaEvolution.open({
    registry: registry as Registry,
    subject: 'wine.wines-value',
    list: wines,
  });
  const since: (number | null)[] = [];
  const published$ = listEvents({
    task: fakeTask('wines', { description: { ...WINE, times: format, lists: [wines] } }, answer),
    lanes: FREE_LANES,
    evolution,
    checkpoint: fakeCheckpoint({
      commit: ({ cursor }) => {
        since.push(cursor.since);
        return Promise.resolve();
      },
    }),
    confirmations: new Confirmations({ now: () => Date.now() }),
    key: { keyFields: ['id'], beganAt: null, wasEmpty: false },
  });
  const published = await lastValueFrom(published$.pipe(take(6), toArray()));
  const polls = published.filter(({ lane }) => lane === 'poll');
  const dates = queries.flatMap((query) =>
    Object.values(query).filter((value): value is string => typeof value === 'string'),
  );
  return { format, since, dates, changes: polls.flatMap(({ changes }) => changes) };
}

it.each(['epoch-s', 'http-date', { pattern: 'yyyy-MM-dd.HH:mm:ss', zone: 'UTC' }] as const)(
  'a list with other names of stamps, in %j, is polled and published by them',
  async (times) => {
    const { format, since, dates, changes } = await reads(times);

    expect(changes.length).toBeGreaterThan(2);
    for (const { key, updatedAt } of changes) {
      expect(updatedAt).toBe(SNAPSHOT_AT + Number(key) * STEP_MS);
    }
    expect(since.at(-1)).toBeGreaterThan(SNAPSHOT_AT);
    expect(dates.length).toBeGreaterThan(2);
    for (const date of dates) expect(format.read(date)).not.toBeNull();
  },
);

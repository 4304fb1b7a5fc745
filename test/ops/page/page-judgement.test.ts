import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { ConnectionState } from '../../../src/ops/page/status-verdict.ts';
import { verdictOf } from '../../../src/ops/page/status-verdict.ts';
import { timeOfDay } from '../../../src/ops/page/words.ts';
import { StatusModel } from '../../../src/ops/status/status.ts';
import type { Status, Warning } from '../../../src/ops/status/status-json.ts';

const AT = Date.parse('2026-01-01T12:00:00Z');
const LIVE = { isLive: true } as const;

function status(more: Partial<Status> = {}): Status {
  const { status } = new StatusModel({
    description: WINE,
    pollIntervalMs: 0,
    account: 'cellar',
    prefix: 'wine',
    resources: ['orders'],
    now: () => AT,
    readiness: () => ({ ready: true, reasons: [], causes: [] }),
  });
  return { ...status(), ...more };
}

function warned(...kinds: Warning['kind'][]): Status {
  return status({
    warnings: kinds.map((kind) => ({ kind, resource: 'orders', text: kind, at: AT })),
  });
}

describe('what the page says first', () => {
  it('is that all is well only while no warning says otherwise', () => {
    expect(verdictOf(status(), LIVE)).toMatchObject({
      tone: 'good',
      headline: 'Ready: the topics say what the API says',
    });
    const harmless = verdictOf(warned('list-moved', 'tried-again', 'images-discarded'), LIVE);
    expect(harmless).toMatchObject({ tone: 'good', problems: { length: 3 } });
    const inDoubt = verdictOf(warned('deletions-held', 'list-unsettled', 'deletions-held'), LIVE);
    expect(inDoubt).toMatchObject({
      tone: 'warn',
      headline: 'Ready, but deletions are held back, records may be missing',
    });
    for (const kind of ['deletions-unknown', 'dead-letters'] as const)
      expect(verdictOf(warned(kind), LIVE).tone).toBe('warn');
  });

  it('counts events where no record has a time that tells how late they are', () => {
    expect(verdictOf(status(), LIVE).subline).toBe('Nothing has changed in the last five minutes.');
    const [orders] = status().resources;
    const series = { ...orders!.series, everyMs: 5_000, eventsPerSecond: [0.2, 0, 0.4] };
    expect(verdictOf(status({ resources: [{ ...orders!, series }] }), LIVE).subline).toBe(
      'Published in the last five minutes: 3 events.',
    );
  });

  it('is why it is not ready, whatever else there is', () => {
    const away = { ready: false, reasons: ['orders: no answer'], causes: ['api'] as const };
    const { tone, headline } = verdictOf({ ...warned('deletions-held'), ...away }, LIVE);
    expect([tone, headline]).toEqual(['bad', 'Not ready: waiting for the API']);
  });

  it('is since when nothing was heard, on one clock', () => {
    const lost: ConnectionState = { isLive: false, since: AT + 3_600_000, isReachable: false };
    expect(verdictOf(status(), lost)).toMatchObject({
      tone: 'lost',
      headline: `No word from the service since ${timeOfDay(AT)}`,
      subline:
        'The connection is lost. The figures below are as of then. This page tries again by itself.',
    });
    expect(verdictOf(undefined, lost)).toMatchObject({
      headline: `No word from the service since ${timeOfDay(AT + 3_600_000)}`,
      subline: 'This page tries again by itself.',
    });
  });

  it('is that the service answers, where it only has no place for one more page', () => {
    const untold: ConnectionState = { isLive: false, since: AT, isReachable: true };
    const { headline, subline } = verdictOf(status(), untold);
    expect(headline).toBe(`Not live: as of ${timeOfDay(AT)}`);
    expect(subline).toMatch(/^The service answers, .*too many pages may be open/);
  });
});

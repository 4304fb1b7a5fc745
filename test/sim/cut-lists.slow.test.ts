import { describe, expect, it, vi } from 'vitest';
import type { Resource } from '../../src/config/config.ts';
import { certificatesIn, checkCut } from './check-certificates.ts';
import { oneProcess } from './one-process.ts';
import type { OneProcessOptions } from './one-process.ts';
import { chainsOf } from './published.ts';
import { PAGING_AS_WRITTEN } from './sim-paging.ts';
import type { Paging } from './sim-paging.ts';

vi.setConfig({ testTimeout: 120_000 }); // minutes of virtual time takes seconds, and more where the machine is busy

const A_MINUTE_MS = 60_000;
const MINUTES = 12;
/** Records that the list shows, of 80 in all. */
const LIMIT = 40;

const env = {
  LOOKBACK_MS: '15000',
  SWEEP_INTERVAL_MS: '60000',
  CERTIFICATE_INTERVAL_MS: '60000',
  DELETE_PROOF_MS: '60000',
  PAGE_SIZE: '30',
};

/** Twelve minutes of a list that is not shown to its end, while one record is new or changes each minute. */
async function story(
  resource: Resource,
  paging: Partial<Paging>,
  { sort = 'key-asc', grows = false }: Pick<OneProcessOptions, 'sort'> & { grows?: boolean } = {},
) {
  const { process, lines, time, api, broker, registry, topic } = oneProcess({
    ...{ seed: 5, resource, env, perMinute: 100, sort },
  });
  api.paging = { ...PAGING_AS_WRITTEN, ...paging };
  await time.pass(A_MINUTE_MS);
  const first = Number([...api.list.truth().keys()][0]);
  for (let minute = 0; minute < MINUTES; minute++) {
    if (grows) api.list.grow();
    else api.list.alter(first, {});
    await time.pass(A_MINUTE_MS);
  }
  const chains = chainsOf(broker.read(topic), registry);
  const lists = api.arrivals.filter(({ what }) => what === 'list');
  return {
    process,
    lines,
    published: chains.size,
    versions: (chains.get(String(first)) ?? []).length,
    tombstones: [...chains.values()].flat().filter((event) => event === 'tombstone').length,
    letters: broker.read('sim.dead-letters').length,
    /** Proofs of the certificates whose reading lacks a published record. */
    proofs: new Set(
      certificatesIn(broker)
        .filter(({ at }) => at > time.now() - 8 * A_MINUTE_MS)
        .map(({ proof }) => proof),
    ),
    requests: lists.length,
    logins: api.arrivals.length - lists.length,
  };
}

describe('offsets over 40 that are answered with 400 ("result window is too large")', () => {
  it.each([
    ['offset', 'orders'],
    ['offset', 'inventory'],
    ['end', 'customers'],
  ] as const)(
    'end the list there with a warning, and nothing is deleted or taken for whole: by the %s of a page, %s',
    async (of, resource) => {
      const { process, lines, published, versions, tombstones, letters, proofs, requests, logins } =
        await story(resource, { limit: { at: LIMIT, of } });
      expect(process.state).toBe('running');
      expect(published).toBeGreaterThanOrEqual(LIMIT);
      expect(versions).toBe(1 + MINUTES); // polls, or sweeps, go on
      expect([tombstones, letters]).toEqual([0, 0]);
      expect(proofs.has('exact')).toBe(false);
      expect(proofs.size).toBeGreaterThan(0);
      expect(lines.some((line) => line.includes(': cut at '))).toBe(true);
      expect(requests).toBeLessThan(100 * (MINUTES + 2));
      expect(logins).toBeLessThan(5);
    },
  );

  it('cost a few requests of single records once, not each record of each page', async () => {
    const whole = await story('customers', {});
    const cut = await story('customers', { limit: { at: LIMIT, of: 'end' } });
    expect(cut.requests).toBeLessThan(whole.requests + MINUTES * 8);
  });
});

describe('a total that stops at 40, the newest first, with one new record a minute', () => {
  it.each(['customers', 'inventory'] as const)(
    'loses none of the records that are pushed out, and nothing is taken for whole: %s',
    async (resource) => {
      const { lines, published, tombstones, proofs } = await story(
        resource,
        { cap: LIMIT },
        { sort: 'key-desc', grows: true },
      );
      expect(published).toBeGreaterThanOrEqual(LIMIT + MINUTES);
      expect(tombstones).toBe(0);
      expect(proofs.has('exact')).toBe(false);
      expect(lines.some((line) => line.includes(': cut at 40'))).toBe(true);
    },
  );
});

it('takes a certificate for exact whose reading has all records that a wrong index shows in front of the limit', async () => {
  const { time, api, broker } = oneProcess({
    ...{ seed: 5, resource: 'orders', perMinute: 100 },
    env: {
      ...env,
      SWEEP_INTERVAL_MS: '70000', // longer than a proof: the sweep that misses records also requests them again
      CERTIFICATE_INTERVAL_MS: '10000',
      DELETE_LIMIT_PERCENT: '100',
    },
  });
  api.paging = { ...PAGING_AS_WRITTEN, limit: { at: LIMIT, of: 'end' } };
  api.list.beWrong(time.now() + A_MINUTE_MS, A_MINUTE_MS - 10_000);
  await time.pass(3 * A_MINUTE_MS);

  const exact = certificatesIn(broker).filter(({ proof }) => proof === 'exact');
  expect(exact.length).toBeGreaterThan(0);
  expect(Math.max(...exact.map(({ read }) => read))).toBeLessThan(LIMIT);
  expect(checkCut(exact, api, time.now())).toEqual([]);
  const lacking = exact.map((each) => ({ ...each, read: each.read - 1 }));
  expect(checkCut(lacking, api, time.now())).toHaveLength(exact.length);
});

import { describe, expect, it } from 'vitest';
import type { Resource } from '../../src/config/config.ts';
import { objectIn } from '../../src/core/http-text.ts';
import { deadLetterCodec } from '../../src/schemas/events/own-records.ts';
import { unframe } from '../../src/schemas/registry/wire.ts';
import { oneProcess } from './one-process.ts';
import { chainsOf, imagesOf, isTruth } from './published.ts';
import { PERSONAL } from './sim-api.ts';
import type { Oddity } from './sim-api.ts';

const CALM_MS = 40_000;
const ODD_MS = 80_000;
/** In the time of calm, and one that goes on as it begins. */
const SWEEPS = 5;

const env = {
  POLL_INTERVAL_MS: '4000',
  LOOKBACK_MS: '15000',
  SWEEP_INTERVAL_MS: '10000',
  DELETE_LIMIT_PERCENT: '100',
  DELETE_PROOF_MS: '6000',
  PAGE_SIZE: '30',
};

/** A list of which some records are no JSON for a while, and what was published of it by the end of that and after. */
async function story(resource: Resource, way: Oddity['way'], pii = {}) {
  const { state, time, api, broker, registry, topic } = oneProcess({
    seed: 2,
    resource,
    env: { ...env, ...pii },
    perMinute: 1_000,
  });
  api.isPersonal = 'PII_DROP' in pii;
  const requestsIn = async (ms: number) => {
    const before = api.arrivals.length;
    await time.pass(ms);
    return api.arrivals.length - before;
  };

  await time.pass(CALM_MS);
  const calm = await requestsIn(CALM_MS);
  api.oddity = { from: time.now(), to: time.now() + ODD_MS, way };
  for (let n = 0; n < 20; n++) {
    api.list.change();
    await time.pass((ODD_MS - CALM_MS) / 20);
  }
  const settled = await requestsIn(CALM_MS - 2_000);
  const truth = api.list.truth();
  const odd = [...truth.keys()].filter((key) => api.wasOdd(Number(key), time.now(), time.now()));
  const chains = chainsOf(broker.read(topic), registry);
  const deleted = odd.filter((key) => chains.get(key)?.at(-1) === 'tombstone');
  await time.pass(ODD_MS);
  const letters = broker
    .read('sim.dead-letters')
    .map(({ value }) => deadLetterCodec.decode(unframe(value!).payload));
  const isWell = isTruth(imagesOf(broker, registry, topic)(), api.list);
  return { state, calm, settled, odd, deleted, letters, isWell };
}

describe('a record that is no JSON for a while', () => {
  // Each way in each order of a list: `unreadable-page.property.test.ts`.
  it.each([
    ['orders', 'word'],
    ['products', 'brace'],
    ['inventory', 'quote'],
    ['orders', 'cut'],
    ['inventory', 'cut'],
  ] as const)(
    'of %s is a dead letter once, is not deleted, and is there again after it: %s',
    async (resource, way) => {
      const { state, calm, settled, odd, deleted, letters, isWell } = await story(resource, way);
      expect(state).toBe('running');
      expect(odd.length).toBeGreaterThan(3);
      expect(deleted).toEqual([]);
      expect(isWell).toBe(true);
      expect(new Set(letters.map(({ reason }) => reason))).toEqual(new Set(['unreadable']));
      expect(letters.filter(({ raw }) => objectIn(raw))).toEqual([]);
      const told = new Set(letters.map(({ raw }) => raw));
      expect(told.size).toBe(letters.length);
      expect(told.size).toBeGreaterThanOrEqual(odd.length);
      // Read again it costs nothing; but sweeps ask for an order that they have missed.
      const asked = resource === 'orders' ? odd.length * SWEEPS : 0;
      if (way !== 'cut') expect(settled).toBeLessThan(1.3 * calm + asked);
    },
  );
});

it('of a record that is no JSON nothing is published but how long it was and a hash where fields are hidden', async () => {
  const { letters, isWell } = await story('products', 'word', { PII_DROP: 'products.contact' });
  expect(isWell).toBe(true);
  expect(letters.length).toBeGreaterThan(3);
  for (const { raw } of letters) {
    expect(objectIn(raw)).toEqual({
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
      length: expect.any(Number) as unknown,
    });
  }
  expect(JSON.stringify(letters)).not.toContain(PERSONAL);
});

it('a list with a record that no answer holds loses no record until that one can be read', async () => {
  const { time, api, broker, topic } = oneProcess({
    ...{ seed: 4, resource: 'inventory', env, perMinute: 1_000 },
  });
  const tombstones = () => broker.read(topic).filter(({ value }) => value === null);
  await time.pass(CALM_MS);
  const [poisoned, removed] = [...api.list.truth().keys()].map(Number).slice(40);
  api.poison = { key: poisoned!, from: time.now(), to: time.now() + 5 * ODD_MS };
  api.list.remove(removed!);
  await time.pass(5 * ODD_MS);
  expect(tombstones()).toEqual([]);
  await time.pass(ODD_MS);
  expect(tombstones().map(({ key }) => key)).toEqual([String(removed)]);
});

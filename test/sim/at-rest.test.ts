import { expect, it } from 'vitest';
import { oneProcess } from './one-process.ts';

const MINUTE_MS = 60_000;
const MINUTES = 20;

it('commits a list that is read whole, and does not change, once a minute: certificate and cursor together', async () => {
  const { state, time, broker } = oneProcess({
    seed: 1,
    resource: 'inventory',
    env: { POLL_INTERVAL_MS: '10000' },
    perMinute: 100,
  });
  const written = () =>
    ['sim.cursors', 'sim.certificates'].map((topic) => broker.read(topic).length);

  await time.pass(3 * MINUTE_MS);
  const [cursors, certificates] = written();
  await time.pass(MINUTES * MINUTE_MS);
  const [moreCursors, moreCertificates] = written();

  expect(state).toBe('running');
  // Readings begin every ten seconds: a minute may have become 70.
  expect(moreCertificates! - certificates!).toBeGreaterThanOrEqual((MINUTES * 60) / 71);
  expect(moreCursors! - cursors!).toBe(moreCertificates! - certificates!);
});

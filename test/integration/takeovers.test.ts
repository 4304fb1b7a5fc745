import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { LIMITS, takeover } from './support/takeover.ts';
import type { Fault, Takeover } from './support/takeover.ts';
import { scaled } from '../support/scale.ts';

/** A successor waits no longer than that, whatever it finds. */
const SILENCE_MS = 15_000;
const CLEAN_MS = 3_000;
/** A process starts: on two cores, beside many others. */
const START_MS = 8_000;

/** So that not all of them start processes at once. */
const APART_MS = 4_000;

const at = (ms: number) => sleep(ms);

const FAULTS: readonly Fault[] = [
  { name: 'beside', strike: () => at(0) },
  { name: 'killed', strike: ({ cli }) => cli.end('SIGKILL') },
  { name: 'stopped', strike: ({ cli }) => cli.end('SIGTERM') },
  {
    name: 'paused',
    strike: ({ cli }) => Promise.resolve(cli.process.kill('SIGSTOP')),
    meanwhile: async ({ cli }) => {
      await at(30_000);
      cli.process.kill('SIGCONT');
    },
  },
];
const MORE_FAULTS: readonly Fault[] = [
  {
    name: 'woken-soon',
    strike: ({ cli }) => Promise.resolve(cli.process.kill('SIGSTOP')),
    meanwhile: async ({ cli }) => {
      await at(5_000);
      cli.process.kill('SIGCONT');
    },
  },
  { name: 'no-kafka', strike: ({ toKafka }) => Promise.resolve(toKafka.tcp.fallSilent()) },
  { name: 'no-api', strike: ({ toApi }) => Promise.resolve(toApi.fallSilent()) },
  {
    name: 'scope-changed',
    isShared: true,
    first: { QUOTA_SCOPE: 'endpoint' },
    second: { QUOTA_SCOPE: 'key' },
    strike: ({ cli }) => cli.end('SIGKILL'),
  },
  {
    name: 'quota-changed',
    first: { QUOTA_PER_MINUTE: '60' },
    second: { QUOTA_PER_MINUTE: '100' },
    strike: ({ cli }) => cli.end('SIGTERM'),
  },
];

const faults = scaled(FAULTS, [...FAULTS, ...MORE_FAULTS]);

function keeps(name: string, { most, refused, firstAfterMs, silenceMs }: Takeover): void {
  expect.soft(most.list, name).toBeLessThanOrEqual(LIMITS.list);
  expect.soft(most.login, name).toBeLessThanOrEqual(LIMITS.login);
  expect.soft(refused, name).toBe(0);
  expect.soft(silenceMs, name).toBeLessThan(SILENCE_MS + START_MS);
  if (name === 'stopped') expect.soft(firstAfterMs, name).toBeLessThan(CLEAN_MS + START_MS);
}

describe('a second instance with a folder of its own', () => {
  // They only wait for minutes to pass: beside each other.
  it('keeps to the quota whatever becomes of the first, and is soon there', async () => {
    const took = await Promise.all(
      faults.map(async (fault, k) => {
        await at(k * APART_MS);
        return { name: fault.name, ...(await takeover(`taken-${fault.name}`, fault)) };
      }),
    );
    console.table(took.map(({ name, most, ...rest }) => ({ name, ...most, ...rest })));
    for (const { name, ...each } of took) keeps(name, each);
  }, 400_000);
});

import { describe, expect, it } from 'vitest';
import { scaled } from '../support/scale.ts';
import { fleetForTest } from './support/fleet.ts';
import type { TestFleet } from './support/fleet.ts';
import {
  expectServed,
  listening,
  mostOfQuota,
  servedAgain,
  shared,
} from './support/fleet-states.ts';

const ACCOUNTS = 6;
/** More than the quota allows: an overrun would show. */
const BUSY = { POLL_INTERVAL_MS: '500' };

const startAll = (fleet: TestFleet, names: readonly string[]) =>
  names.map((name) => fleet.start(name));

// Left to the long run: the quota's window is to be full.
describe.runIf(scaled(false, true))('a fleet', { timeout: 240_000 }, () => {
  /*
   * What they wait for runs at the same time, and is less than the half minute that is promised. The group: dead members
   * are waited for until their sessions are over, 8 s, and who starts late has it shared out once more. The ledgers, which nobody
   * has settled: at 100 requests a minute (floor(0.185 * 100) + 3) * 60 / 100 + 1 = 13.6 s from the kill on.
   */
  it('whose instances are all killed at once is served by others that start at once', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-lost', accounts: ACCOUNTS, env: BUSY });
    const lost = startAll(fleet, ['one', 'two', 'three']);
    await shared(lost, ACCOUNTS);
    await mostOfQuota(fleet.accounts);

    await Promise.all(lost.map(({ cli }) => cli.end('SIGKILL')));
    const killedAt = Date.now();
    // On other machines: no folder tells what was asked.
    const others = startAll(fleet, ['four', 'five', 'six']);
    const startedAt = await Promise.race(others.map(listening));
    await shared(others, ACCOUNTS);
    const silence = await servedAgain(fleet.accounts, killedAt);
    const seconds = silence.map((ms) => (ms / 1_000).toFixed(1));
    console.log('from the kill of all instances to the first answer, s:', seconds.join(' '));
    expectServed('all killed, from the start of the others on', fleet.accounts, startedAt);
    expect(await fleet.violations()).toEqual([]);
  });
});

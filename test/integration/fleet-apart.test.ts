import { describe, expect, it, vi } from 'vitest';
import { scaled } from '../support/scale.ts';
import { between } from './support/between.ts';
import { fleetForTest } from './support/fleet.ts';
import type { Instance } from './support/fleet.ts';
import { followFleet } from './support/fleet-said.ts';
import {
  expectServed,
  listening,
  mostOfQuota,
  named,
  servedAgain,
  shared,
  silences,
  SOON,
  timeOf,
} from './support/fleet-states.ts';

const ACCOUNTS = 6;
const EACH = ACCOUNTS / 3;
/** More than the quota allows: an overrun would show. */
const BUSY = { POLL_INTERVAL_MS: '500' };
/** Whether the quota's window is full when the fault strikes: that takes most of a minute. */
const FILLS = scaled(false, true);
/** Ten seconds, and the one that the next is declared ahead. */
const BLOCK_MS = 11_000;

/** When an instance has taken an account first since then. */
const firstClaim = async ({ cli }: Instance, since: number): Promise<number> =>
  timeOf(await cli.logged((line) => line.step === 'claim' && timeOf(line) >= since));

/** A fleet of three instances that have started at once. The first is behind proxies. */
async function threeInstances(prefix: string) {
  const fleet = await fleetForTest({ prefix, accounts: ACCOUNTS, env: BUSY });
  const way = await between(fleet);
  const one = fleet.start('one', way.env);
  const others = ['two', 'three'].map((name) => fleet.start(name));
  const instances = [one, ...others];
  const startedAt = await Promise.race(instances.map(listening));
  await shared(instances, ACCOUNTS);
  const said = await followFleet(fleet);
  for (const { name } of instances) await said.runBy(name, EACH);
  await (FILLS ? mostOfQuota(fleet.accounts) : servedAgain(fleet.accounts, Date.now()));
  return { fleet, said, way, one, others, instances, startedAt };
}

describe('an instance apart from the others', { timeout: 240_000 }, () => {
  it('is paused beyond its block, and asks for nothing of what others have when it is woken', async () => {
    const { fleet, said, way, one, others, instances, startedAt } =
      await threeInstances('fleet-paused');
    expectServed('all instances started at once', fleet.accounts, startedAt);

    const pausedAt = Date.now();
    one.cli.process.kill('SIGSTOP');
    await shared(others, ACCOUNTS);
    await servedAgain(fleet.accounts, pausedAt + BLOCK_MS);
    expectServed('an instance paused', fleet.accounts, pausedAt);

    const wokenAt = Date.now();
    one.cli.process.kill('SIGCONT');
    await shared(instances, ACCOUNTS);
    const claimedAt = await firstClaim(one, wokenAt);
    await said.runBy('one', EACH);
    expect(way.sent.filter((at) => at > wokenAt && at < claimedAt)).toEqual([]);
    await servedAgain(fleet.accounts, Date.now());
    expectServed('woken', fleet.accounts, wokenAt);
    expect(await fleet.violations()).toEqual([]);
  });

  it('is cut off from Kafka, and asks the API no more when its block is over', async () => {
    const { fleet, said, way, one, others, instances } = await threeInstances('fleet-no-kafka');
    const its = named(fleet, await said.runBy('one', EACH));
    for (const { sandbox } of its) sandbox.setRate(0); // it would wait for Kafka to take the changes

    const cutAt = Date.now();
    way.toKafka.tcp.fallSilent();
    await shared(others, ACCOUNTS);
    await servedAgain(fleet.accounts, cutAt + BLOCK_MS);
    expectServed('an instance cut off from Kafka', fleet.accounts, cutAt);
    const last = way.sent.at(-1)! - cutAt;
    console.log(`asked for so long after it was cut off, s: ${(last / 1_000).toFixed(1)}`);
    expect(last).toBeLessThan(BLOCK_MS);
    for (const { sandbox } of its) sandbox.setRate(1);

    const backAt = Date.now();
    way.toKafka.tcp.answer();
    await shared(instances, ACCOUNTS);
    const claimedAt = await firstClaim(one, backAt);
    await said.runBy('one', EACH);
    expect(way.sent.filter((at) => at > backAt && at < claimedAt)).toEqual([]);
    await servedAgain(fleet.accounts, Date.now());
    expectServed('back at Kafka', fleet.accounts, backAt);
    expect(await fleet.violations()).toEqual([]);
  });

  it.runIf(scaled(false, true))(
    'has its connections to Kafka die without a sign, and takes over what another one leaves',
    async () => {
      const fleet = await fleetForTest({ prefix: 'fleet-dark', accounts: 4, env: BUSY });
      const way = await between(fleet);
      const one = fleet.start('one', way.env);
      const two = fleet.start('two');
      await shared([one, two], 4);
      const said = await followFleet(fleet);
      for (const { name } of [one, two]) await said.runBy(name, 2);
      await mostOfQuota(fleet.accounts);

      const darkAt = Date.now();
      way.toKafka.tcp.darken();
      await two.cli.end('SIGKILL');
      await shared([one], 4);
      await said.runBy('one', 4);
      await servedAgain(fleet.accounts, Date.now());
      expectServed('connections that died without a sign, and a kill', fleet.accounts, darkAt);
      expect(await fleet.violations()).toEqual([]);
    },
  );

  // Left to the long run: what is not answered is waited for, for as long as an answer may take.
  it.runIf(scaled(false, true))(
    'is cut off from the API alone, keeps its accounts, and goes on with them when it is back',
    async () => {
      const { fleet, said, way, instances } = await threeInstances('fleet-no-api');
      const its = named(fleet, await said.runBy('one', EACH));
      const others = fleet.accounts.filter((account) => !its.includes(account));
      const claims = () => instances.flatMap((each) => each.claimed());
      const before = claims();

      const cutAt = Date.now();
      way.toApi.fallSilent();
      await vi.waitFor(
        () => expect(Math.min(...silences(its, cutAt))).toBeGreaterThan(15_000),
        SOON,
      );
      expectServed('the others, one cut off from the API', others, cutAt);
      const backAt = Date.now();
      way.toApi.answer();
      await servedAgain(its, backAt);
      expectServed('back at the API', fleet.accounts, backAt);
      expect(claims()).toEqual(before);
      expect(await fleet.violations()).toEqual([]);
    },
  );
});

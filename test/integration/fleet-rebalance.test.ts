import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { JavaServices } from '../../src/devstack/services.ts';
import { withAdmin } from '../support/with-admin.ts';
import { ClusterProxy } from '../support/proxy/cluster-proxy.ts';
import type { Aim } from '../support/proxy/kafka-proxy.ts';
import { scaled } from '../support/scale.ts';
import { between } from './support/between.ts';
import { startCluster } from './support/cluster.ts';
import { fleetForTest } from './support/fleet.ts';
import type { Instance } from './support/fleet.ts';
import { followFleet } from './support/fleet-said.ts';
import { expectServed, servedAgain, shared, SOON } from './support/fleet-states.ts';
import { inSync } from './support/partitions.ts';

const ACCOUNTS = 4;
/** More than the quota allows: an overrun would show. */
const BUSY = { POLL_INTERVAL_MS: '500' };
const groupOf = (prefix: string) => `cellarstream.${prefix}.fleet`;

/** How the group is, by its coordinator. */
const stateOf = (kafka: Kafka, group: string) =>
  withAdmin(kafka, async (admin) => (await admin.describeGroups([group])).groups[0]?.state);

/** The accounts that an instance has stopped, for whatever reason. */
const letGo = ({ cli }: Instance) =>
  cli
    .lines()
    .filter(({ step }) => step === 'release' || step === 'drop' || step === 'stop')
    .map(({ account }) => account);

// Left to the long run: sessions run out, and brokers start. The simulation has both faults.
describe.runIf(scaled(false, true))('a rebalance', { timeout: 240_000 }, () => {
  it('whose leader is killed before it has said what each is given is begun anew', async () => {
    const prefix = 'fleet-leader';
    const fleet = await fleetForTest({ prefix, accounts: ACCOUNTS, env: BUSY });
    const way = await between(fleet);
    const one = fleet.start('one', way.env); // the first is the leader, as long as it lives
    await shared([one], ACCOUNTS);
    const two = fleet.start('two');
    await shared([one, two], ACCOUNTS);
    await servedAgain(fleet.accounts, 0);

    const share = way.toKafka.strike(
      { api: 'SyncGroup', where: ({ id }) => id === groupOf(prefix) },
      async () => void (await one.cli.end('SIGKILL')),
    );
    const three = fleet.start('three');
    await share.done;
    const killedAt = Date.now();
    await shared([two, three], ACCOUNTS);
    await servedAgain(fleet.accounts, Date.now());
    expectServed('the leader killed between JoinGroup and SyncGroup', fleet.accounts, killedAt);
    expect(await fleet.violations()).toEqual([]);
  });

  describe('on three brokers', () => {
    let cluster: JavaServices | string;
    beforeAll(async () => {
      cluster = await startCluster();
    });
    afterAll(() => (typeof cluster === 'string' ? undefined : cluster.stop()));

    // What one member holds back keeps the group in that state until its coordinator is gone.
    it.for([
      { api: 'JoinGroup', state: 'PreparingRebalance' },
      { api: 'SyncGroup', state: 'CompletingRebalance' },
    ] as const)(
      'is begun anew where its coordinator is killed while it waits for a $api, and no account stops',
      async ({ api, state }, { skip }) => {
        if (typeof cluster === 'string') return skip(cluster);
        const { nodes, brokers } = cluster;
        const kafka = new Kafka({ brokers, logLevel: logLevel.NOTHING });
        const prefix = `fleet-coordinator-${api}`;
        const fleet = await fleetForTest({
          ...{ prefix, accounts: ACCOUNTS, services: cluster, env: BUSY },
        });
        const proxy = await ClusterProxy.listen(brokers);
        onTestFinished(() => proxy.close());
        const one = fleet.start('one', { KAFKA_BROKERS: proxy.addresses.join() }); // the leader
        await shared([one], ACCOUNTS);
        const two = fleet.start('two');
        await shared([one, two], ACCOUNTS);
        await servedAgain(fleet.accounts, 0);
        const said = await followFleet(fleet);
        for (const { name } of [one, two]) await said.runBy(name, ACCOUNTS / 2);
        const claimed = () => [one, two].map((each) => each.claimed());
        const before = { claimed: claimed(), letGo: [one, two].flatMap(letGo) };

        // The first of them alone: the next one goes to another coordinator.
        let isHeld = false;
        const held: Aim = { api, where: ({ id }) => id === groupOf(prefix) && !isHeld };
        const hold = () => void (isHeld = true);
        const holding = proxy.proxies.map((each, k) => each.strike(held, hold).begun.then(() => k));
        const three = fleet.start('three');
        const coordinator = nodes[await Promise.race(holding)]!;
        expect(await stateOf(kafka, groupOf(prefix))).toBe(state);
        const killedAt = Date.now();
        await coordinator.kill();
        await shared([one, two, three], ACCOUNTS);
        await servedAgain(fleet.accounts, Date.now());
        expectServed(`the coordinator killed, ${state}`, fleet.accounts, killedAt);
        // One account moves to the newcomer; the others are neither stopped nor taken anew.
        await vi.waitFor(() => expect(three.claimed()).toHaveLength(1), SOON);
        expect(claimed()).toEqual(before.claimed);
        expect([one, two].flatMap(letGo).toSorted()).toEqual(
          [...before.letGo, ...three.claimed()].toSorted(),
        );

        await coordinator.start();
        await inSync(kafka);
        expect(await fleet.violations()).toEqual([]);
      },
    );
  });
});

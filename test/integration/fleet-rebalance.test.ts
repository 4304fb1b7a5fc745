import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JavaServices } from '../../src/devstack/services.ts';
import { ClusterProxy } from '../support/proxy/cluster-proxy.ts';
import { pass } from '../support/proxy/kafka-proxy.ts';
import type { Aim } from '../support/proxy/kafka-proxy.ts';
import { scaled } from '../support/scale.ts';
import { between } from './support/between.ts';
import { startCluster } from './support/cluster.ts';
import { fleetForTest } from './support/fleet.ts';
import { expectServed, servedAgain, shared } from './support/fleet-states.ts';
import { inSync } from './support/partitions.ts';

const ACCOUNTS = 4;
/** More than the quota allows: an overrun would show. */
const BUSY = { POLL_INTERVAL_MS: '500' };
const groupOf = (prefix: string) => `cellarstream.${prefix}.fleet`;

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

    it('is begun anew where its coordinator is killed, and no account stops meanwhile', async ({
      skip,
    }) => {
      if (typeof cluster === 'string') return skip(cluster);
      const { nodes } = cluster;
      const prefix = 'fleet-coordinator';
      const fleet = await fleetForTest({
        prefix,
        accounts: ACCOUNTS,
        services: cluster,
        env: BUSY,
      });
      const instances = ['one', 'two'].map((name) => fleet.start(name));
      await shared(instances, ACCOUNTS);
      await servedAgain(fleet.accounts, 0);

      const proxy = await ClusterProxy.listen(fleet.brokers);
      const join: Aim = { api: 'JoinGroup', where: ({ id }) => id === groupOf(prefix) };
      const joined = proxy.proxies.map((each, k) => each.strike(join, pass).begun.then(() => k));
      const three = fleet.start('three', { KAFKA_BROKERS: proxy.addresses.join() });
      const coordinator = nodes[await Promise.race(joined)]!;
      const killedAt = Date.now();
      await coordinator.kill();
      await shared([...instances, three], ACCOUNTS);
      await servedAgain(fleet.accounts, Date.now());
      expectServed('the coordinator killed in a rebalance', fleet.accounts, killedAt);

      await coordinator.start();
      await inSync(new Kafka({ brokers: cluster.brokers, logLevel: logLevel.NOTHING }));
      expect(await fleet.violations()).toEqual([]);
      await proxy.close();
    });
  });
});

import kafkajs, { Kafka, logLevel } from 'kafkajs';
import type { AclEntry } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { JavaServices } from '../../src/devstack/services.ts';
import { withAdmin } from '../support/with-admin.ts';
import { scaled } from '../support/scale.ts';
import type { LogLine } from './support/cli.ts';
import { startCluster } from './support/cluster.ts';
import { fleetForTest } from './support/fleet.ts';
import type { Instance, TestAccount, TestFleet } from './support/fleet.ts';
import { followFleet } from './support/fleet-said.ts';
import {
  expectServed,
  named,
  servedAgain,
  shared,
  silences,
  SOON,
} from './support/fleet-states.ts';

const ACCOUNTS = 4;
const EACH = ACCOUNTS / 2;

/** Resolves when each of two instances runs half of the accounts; gives those of the first, and of the second. */
async function evenly(fleet: TestFleet, instances: readonly Instance[]) {
  await shared(instances, ACCOUNTS);
  const said = await followFleet(fleet);
  const all: TestAccount[][] = [];
  for (const { name } of instances) all.push(named(fleet, await said.runBy(name, EACH)));
  await servedAgain(fleet.accounts, Date.now());
  return { said, all: all as [TestAccount[], TestAccount[]] };
}

const claims = (instances: readonly Instance[]) =>
  instances.flatMap((each) => each.claimed()).toSorted();

/** A list that can't go on until somebody does something is tried again in a minute. */
const TRIED_AGAIN = { timeout: 70_000, interval: 100 };

/** Resolves when the list of an account can't go on, wherever that runs. */
async function stopped(instances: readonly Instance[], { name }: TestAccount): Promise<void> {
  const isOfIt = ({ event, account }: LogLine) => event === 'failed' && account === name;
  await Promise.any(instances.map(({ cli }) => cli.logged(isOfIt)));
}

/** Resolves when the list of an account is read again since then, which is told. */
async function goesOn(fault: string, account: TestAccount, since: number): Promise<void> {
  const [againMs] = (await servedAgain([account], since, TRIED_AGAIN)) as [number];
  console.log(`read again, s: ${fault}: ${(againMs / 1_000).toFixed(1)}`);
}

// Left to the long run: these are no faults of a fleet alone, and others would wait for them.
describe.runIf(scaled(false, true))('one account of a fleet', { timeout: 300_000 }, () => {
  it('has its topic deleted, which the others do not notice', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-deleted', accounts: ACCOUNTS });
    const [struck, ...others] = fleet.accounts as [TestAccount, ...TestAccount[]];
    struck.sandbox.setRate(0); // a status that has changed before the loss is told once, and not again
    const instances = ['one', 'two'].map((name) => fleet.start(name));
    await evenly(fleet, instances);
    const before = claims(instances);

    const kafka = new Kafka({ brokers: [...fleet.brokers], logLevel: logLevel.NOTHING });
    const topic = `${fleet.prefix}.${struck.name}.orders`;
    const since = Date.now();
    await withAdmin(kafka, (admin) => admin.deleteTopics({ topics: [topic] }));
    struck.sandbox.setRate(1);
    await stopped(instances, struck);
    await goesOn('its topic deleted', struck, Date.now());
    expectServed('the topic of another one deleted', others, since);
    expect(claims(instances)).toEqual(before); // it keeps its owner, too
    expect(await fleet.violations()).toEqual([]);
  });

  it('has a file that is not the same at all instances', async () => {
    const fleet = await fleetForTest({ prefix: 'fleet-apart', accounts: ACCOUNTS + 1 });
    const fifth = fleet.accounts.at(-1)!;
    const four = fleet.accounts.slice(0, ACCOUNTS);
    const folders = [fleet.folderOf(four), fleet.folderOf(four)] as const;
    const instances = folders.map((folder, k) =>
      fleet.start(['one', 'two'][k]!, { ACCOUNTS_DIR: folder }),
    ) as [Instance, Instance];
    const { said, all } = await evenly({ ...fleet, accounts: four }, instances);
    const [[removed], [changed, wrong]] = all as [[TestAccount], [TestAccount, TestAccount]];
    const runs = (name: string, { name: account }: TestAccount, times = 1) =>
      vi.waitFor(
        () =>
          expect(
            said.all.filter(
              (each) => each.type === 'runs' && each.name === name && each.account === account,
            ),
          ).toHaveLength(times),
        SOON,
      );
    const file = (account: TestAccount, more = '') => fleet.fileOf(account) + more;

    const since = Date.now();
    fleet.setFile(removed.name, undefined, folders[0]);
    await runs('two', removed);
    fleet.setFile(changed.name, file(changed, 'POLL_INTERVAL_MS=700\n'), folders[0]);
    fleet.setFile(wrong.name, file(wrong, 'PAGE_SIZE=many\n'), folders[1]);
    await runs('one', wrong);
    const startedAt = Date.now();
    fleet.setFile(fifth.name, file(fifth), folders[0]);
    await runs('one', fifth);
    // By the file of its owner it has not changed.
    expect(instances[1].claimed().filter((account) => account === changed.name)).toHaveLength(1);

    fleet.setFile(removed.name, file(removed), folders[0]);
    fleet.setFile(changed.name, file(changed, 'POLL_INTERVAL_MS=700\n'), folders[1]);
    fleet.setFile(wrong.name, file(wrong), folders[1]);
    fleet.setFile(fifth.name, file(fifth), folders[1]);
    await runs('two', changed, 2);
    await servedAgain(fleet.accounts, Date.now());
    expectServed('files that differ', four, since);
    expectServed('a file that one instance has alone', [fifth], startedAt);
    expect(await fleet.violations()).toEqual([]);

    // Gone at its owner alone, it goes on at the other; gone there too, it ends.
    fleet.setFile(fifth.name, undefined, folders[0]);
    await runs('two', fifth);
    fleet.setFile(fifth.name, undefined, folders[1]);
    await vi.waitFor(() => expect(silences([fifth], since)[0]).toBeGreaterThan(5_000), SOON);
    for (const { cli } of instances) expect(cli.stderr()).not.toContain('FENCED');
  });

  describe('on a broker with an authorizer', () => {
    const PASSWORD = 'fleet password-5tR';
    let services: JavaServices | string;
    beforeAll(async () => {
      services = await startCluster({
        kafka: {
          nodes: 1,
          listeners: { LOGIN: 'SASL_PLAINTEXT' },
          users: { alice: PASSWORD },
          settings: {
            'listener.name.login.sasl.enabled.mechanisms': 'SCRAM-SHA-256',
            'listener.name.login.scram-sha-256.sasl.jaas.config':
              'org.apache.kafka.common.security.scram.ScramLoginModule required;',
            'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
            'super.users': 'User:ANONYMOUS', // the broker itself, and who checks
            'allow.everyone.if.no.acl.found': 'true',
          },
        },
      });
    });
    afterAll(() => (typeof services === 'string' ? undefined : services.stop()));

    it('is forbidden to write to its topic, and goes on by itself when it may again', async ({
      skip,
    }) => {
      if (typeof services === 'string') return skip(services);
      const fleet = await fleetForTest({
        ...{ prefix: 'fleet-forbidden', accounts: ACCOUNTS, services },
      });
      const [struck, ...others] = fleet.accounts as [TestAccount, ...TestAccount[]];
      const login = {
        KAFKA_BROKERS: services.listeners.LOGIN!,
        KAFKA_SASL_MECHANISM: 'scram-sha-256',
        KAFKA_SASL_USERNAME: 'alice',
        KAFKA_SASL_PASSWORD: PASSWORD,
      };
      const instances = ['one', 'two'].map((name) => fleet.start(name, login));
      await evenly(fleet, instances);
      const before = claims(instances);

      const rule: AclEntry = {
        resourceType: kafkajs.AclResourceTypes.TOPIC,
        resourceName: `${fleet.prefix}.${struck.name}.orders`,
        resourcePatternType: kafkajs.ResourcePatternTypes.LITERAL,
        principal: 'User:alice',
        host: '*',
        operation: kafkajs.AclOperationTypes.WRITE,
        permissionType: kafkajs.AclPermissionTypes.DENY,
      };
      const kafka = new Kafka({ brokers: services.brokers, logLevel: logLevel.NOTHING });
      const since = Date.now();
      await withAdmin(kafka, (admin) => admin.createAcls({ acl: [rule] }));
      await stopped(instances, struck);
      await servedAgain(others, Date.now());

      await withAdmin(kafka, (admin) => admin.deleteAcls({ filters: [rule] }));
      await goesOn('its topic forbidden, and allowed again', struck, Date.now());
      expectServed('the topic of another one forbidden', others, since);
      expect(claims(instances)).toEqual(before); // it keeps its owner, too
      expect(await fleet.violations()).toEqual([]);
    });
  });
});

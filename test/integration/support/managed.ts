import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import kafkajs from 'kafkajs';
import { expect, vi } from 'vitest';
import { cachedJars, findJava } from '../../../src/devstack/jar-cache.ts';
import { startKafka } from '../../../src/devstack/kafka-server.ts';
import type { KafkaLaunch } from '../../../src/devstack/services.ts';
import { Tethered } from '../../../src/devstack/tethered.ts';
import { kafkaTools } from './java-tool.ts';
import { PATIENCE_MS } from './running-test.ts';
import { serverVersions } from './server-versions.ts';

const run = promisify(execFile);
const java = await findJava(process.env);
const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = kafkajs;

/** Why no broker with rules of its own can be started here; undefined where it can. */
export const notManaged: string | undefined = java.found
  ? await run('javac', ['--version']).then(
      () => undefined,
      () => 'javac is not on the PATH',
    )
  : java.reason;

/** What the policy refuses, by the beginning of a topic's name; the text is the broker's message. */
const POLICY = `
import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

public class Rules implements CreateTopicPolicy {
  public void configure(Map<String, ?> settings) {}
  public void close() {}
  public void validate(RequestMetadata topic) {
    String name = topic.topic();
    if (name.startsWith("named.") && topic.configs().containsKey("segment.ms"))
      throw new PolicyViolationException("cannot set \\"segment.ms\\"");
    if (name.startsWith("unnamed.") && topic.configs().containsKey("compression.type"))
      throw new PolicyViolationException("not like this");
    if (name.startsWith("strict.") && topic.configs().containsKey("cleanup.policy"))
      throw new PolicyViolationException("cannot set \\"cleanup.policy\\"");
    if (name.startsWith("narrow.") && topic.numPartitions() != null && topic.numPartitions() > 1)
      throw new PolicyViolationException("at most 1 partition");
  }
}
`;

/** A broker that others run: it has ACLs for the users of its second listener, and a policy for topics. */
export interface Managed {
  /** Without a login, as a user who may do everything. */
  readonly broker: string;
  /** With a login. */
  readonly login: string;
  readonly stop: () => Promise<void>;
}

export const PASSWORD = 'password-pL4';

/** @param users Those who may log in, with {@link PASSWORD}. */
export async function startManaged(users: readonly string[]): Promise<Managed> {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-policy-'));
  const { broker: jars } = await kafkaTools();
  writeFileSync(join(folder, 'Rules.java'), POLICY);
  const classPath = jars.map((each) => join(each, '*')).join(':');
  await run('javac', ['-cp', classPath, '-d', folder, join(folder, 'Rules.java')]);
  const accounts = users.map((user) => `user_${user}="${PASSWORD}"`).join(' ');
  const module = 'org.apache.kafka.common.security.plain.PlainLoginModule';
  const { nodes, listeners, stop } = await startBroker({
    classPath: [folder],
    listeners: { LOGIN: 'SASL_PLAINTEXT' },
    settings: {
      'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      'super.users': 'User:ANONYMOUS',
      'create.topic.policy.class.name': 'Rules',
      'compression.type': 'zstd',
      'listener.name.login.sasl.enabled.mechanisms': 'PLAIN',
      'listener.name.login.plain.sasl.jaas.config': `${module} required ${accounts};`,
    },
  });
  return {
    broker: nodes[0]!.address,
    login: listeners.LOGIN!,
    stop: async () => {
      await stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** One broker that lacks two others: its own topics are to have three copies, as Kafka's defaults say. */
export async function startLacking(): Promise<Managed> {
  const { nodes, stop } = await startBroker({
    settings: {
      'transaction.state.log.replication.factor': '3',
      'transaction.state.log.min.isr': '2',
      'offsets.topic.replication.factor': '3',
    },
  });
  return { broker: nodes[0]!.address, login: '', stop };
}

async function startBroker(kafka: KafkaLaunch) {
  if (!java.found) throw new Error(java.reason);
  const options = { ...serverVersions(), kafka };
  const jars = await cachedJars(options);
  const tethered = await Tethered.start(join(tmpdir(), 'cellarstream-managed-'), process.env);
  try {
    const jvm = { java: java.command, tethered, readyTimeoutMs: 60_000 };
    const started = await startKafka(jars.kafka, jvm, options);
    return { ...started, stop: () => tethered.end() };
  } catch (error) {
    await tethered.end();
    throw error;
  }
}

export type Right = 'CREATE' | 'DESCRIBE' | 'DESCRIBE_CONFIGS' | 'READ' | 'WRITE';

/**
 * Lets a user do this with all topics, or transactional ids, whose names begin so. Returns when the
 * broker applies it: the controller answers before brokers have heard of it.
 */
export async function grant(
  broker: string,
  user: string,
  of: 'TOPIC' | 'TRANSACTIONAL_ID',
  prefix: string,
  rights: readonly Right[],
): Promise<void> {
  const kafka = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING });
  const admin = kafka.admin();
  const rule = {
    resourceType: AclResourceTypes[of],
    resourceName: prefix,
    resourcePatternType: ResourcePatternTypes.PREFIXED,
    principal: `User:${user}`,
    host: '*',
    permissionType: AclPermissionTypes.ALLOW,
  };
  await admin.connect();
  try {
    await admin.createAcls({
      acl: rights.map((right) => ({ ...rule, operation: AclOperationTypes[right] })),
    });
    await vi.waitFor(
      async () => {
        const { resources } = await admin.describeAcls({
          ...rule,
          operation: AclOperationTypes.ANY,
        });
        const applied = resources.flatMap(({ acls }) => acls.map(({ operation }) => operation));
        expect(applied).toEqual(
          expect.arrayContaining(rights.map((right) => AclOperationTypes[right])),
        );
      },
      { timeout: PATIENCE_MS, interval: 50 },
    );
  } finally {
    await admin.disconnect();
  }
}

// Finds the rights in Kafka that this user lacks, and the commands that grant them.

import { KAFKA_LIMITS } from '../../core/retries.ts';
import { hasErrorType } from '../../kafka/client/kafka-error.ts';
import { ERROR } from '../../kafka/client/protocol-errors.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import { withBrokers } from '../../kafka/client/brokers.ts';
import { describeGroup } from '../../kafka/membership/group.ts';
import type { ClusterAccess } from '../../kafka/client/brokers.ts';
import { metadata } from '../../kafka/client/topic-calls.ts';

/** Rights in Kafka that this client's user lacks. The types of Kafka resources and the operations are named as in `kafka-acls.sh`. */
export interface MissingRights {
  readonly resource: 'topic' | 'group' | 'transactional-id';
  readonly name: string;
  /** Present if `name` is a prefix: the rights are missing for all Kafka resources whose names begin with it. */
  readonly isPrefix?: true;
  readonly operations: readonly string[];
}

/** Kafka's numbers of ACL operations. They are bit positions in the bit set of operations that a user may perform. */
const OPERATIONS = { Read: 3, Write: 4, Describe: 8 } as const;
type AclOperation = keyof typeof OPERATIONS;
const READ_AND_WRITE: readonly AclOperation[] = ['Describe', 'Read', 'Write'];
const WRITE_ONLY: readonly AclOperation[] = ['Describe', 'Write'];

/**
 * Returns the rights on existing topics that this client's user needs and lacks. Topics for which the brokers do not report rights
 * (KIP-430) are left out.
 *
 * @throws CellarstreamError as {@link withBrokers} does.
 */
export async function missingTopicRights(
  cluster: ClusterAccess,
  specs: readonly TopicSpec[],
): Promise<readonly MissingRights[]> {
  const names = specs.map(({ topic }) => topic);
  const { topics } = await withBrokers(cluster, KAFKA_LIMITS.taskQuery, (brokers) =>
    brokers.sendToAny(metadata(names, true)),
  );
  return specs.flatMap(({ topic: name, isReadBack }) => {
    const found = topics.find(({ topic }) => topic === name);
    const needed = isReadBack ? READ_AND_WRITE : WRITE_ONLY;
    const isHidden = found?.errorCode === ERROR.TOPIC_AUTHORIZATION_FAILED;
    const allowed = isHidden ? 0 : found?.errorCode === 0 ? found.operations : undefined;
    const operations = allowed === undefined ? [] : needed.filter((each) => !has(allowed, each));
    return operations.length > 0 ? [{ resource: 'topic', name, operations }] : [];
  });
}

/**
 * Returns one element if this client's user lacks the right `Read` on a Kafka group, which every member of the group needs; otherwise an
 * empty array.
 *
 * @throws CellarstreamError as {@link withBrokers} does.
 */
export async function missingGroupRights(
  cluster: ClusterAccess,
  name: string,
): Promise<readonly MissingRights[]> {
  const operations = await withBrokers(cluster, KAFKA_LIMITS.query, async (brokers) => {
    try {
      return (await describeGroup(brokers, name)).operations;
    } catch (error) {
      if (hasErrorType(error, 'GROUP_AUTHORIZATION_FAILED')) return 0;
      throw error;
    }
  });
  return has(operations, 'Read') ? [] : [{ resource: 'group', name, operations: ['Read'] }];
}

function has(bits: number, operation: AclOperation): boolean {
  return (bits & (1 << OPERATIONS[operation])) !== 0;
}

/** Returns one line that names the missing rights, and the command that grants them. */
export function missingRightsText(
  { resource, name, isPrefix, operations }: MissingRights,
  user: string,
): string {
  const grants = operations.map((each) => `--operation ${each}`).join(' ');
  const prefix = isPrefix ? ' --resource-pattern-type prefixed' : '';
  return `this user lacks ${operations.join(', ')} on the ${resource.replace('-', ' ')} ${name}${isPrefix ? '*' : ''}: kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal User:${user} ${grants} --${resource} ${name}${prefix}`;
}

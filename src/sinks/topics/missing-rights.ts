// Which rights this user lacks, and the commands that grant them.

import { ERROR } from '../client/protocol-errors.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import { askBrokers } from '../client/brokers.ts';
import { groupAsItIs } from '../membership/group.ts';
import type { Asked } from '../client/brokers.ts';
import { metadata } from '../client/topic-calls.ts';

/** Rights that this user lacks on one resource of Kafka, in the words of `kafka-acls.sh`. */
export interface MissingRights {
  readonly resource: 'topic' | 'group' | 'transactional-id';
  readonly name: string;
  /** Whether `name` is the beginning of names. */
  readonly isPrefix?: true;
  readonly operations: readonly string[];
}

/** How long brokers are asked, ms. */
const ASKED_MS = 5_000;
/** How long the coordinator of a group is asked, in ms: it may have to read its log first. */
const GROUP_MS = 10_000;
/** Kafka's numbers of operations: the bits of what a user may do. */
const OPERATIONS = { Read: 3, Write: 4, Describe: 8 } as const;
type Operation = keyof typeof OPERATIONS;

/**
 * Rights on existing topics that this user needs and lacks. Empty where the brokers do not report rights (KIP-430).
 *
 * @throws CellarstreamError as {@link askBrokers} does.
 */
export async function missingTopicRights(
  asked: Asked,
  specs: readonly TopicSpec[],
): Promise<readonly MissingRights[]> {
  const names = specs.map(({ topic }) => topic);
  const { topics } = await askBrokers(asked, ASKED_MS, (brokers) =>
    brokers.askAny(metadata(names, true)),
  );
  return specs.flatMap(({ topic: name, isReadBack }) => {
    const found = topics.find(({ topic }) => topic === name);
    const needed: Operation[] = isReadBack ? ['Describe', 'Read', 'Write'] : ['Describe', 'Write'];
    const isHidden = found?.errorCode === ERROR.TOPIC_AUTHORIZATION_FAILED;
    const allowed = isHidden ? 0 : found?.errorCode === 0 ? found.operations : undefined;
    const operations = allowed === undefined ? [] : needed.filter((each) => !has(allowed, each));
    return operations.length > 0 ? [{ resource: 'topic', name, operations }] : [];
  });
}

/**
 * Rights that this user needs to join a group, and lacks.
 *
 * @throws CellarstreamError as {@link askBrokers} does, also when no broker coordinates the group.
 */
export async function missingGroupRights(
  asked: Asked,
  name: string,
): Promise<readonly MissingRights[]> {
  const operations = await askBrokers(asked, GROUP_MS, async (brokers) => {
    try {
      return (await groupAsItIs(brokers, name)).operations;
    } catch (error) {
      if (isGroupRefused(error)) return 0;
      throw error;
    }
  });
  return has(operations, 'Read') ? [] : [{ resource: 'group', name, operations: ['Read'] }];
}

function has(bits: number, operation: Operation): boolean {
  return (bits & (1 << OPERATIONS[operation])) !== 0;
}

function isGroupRefused(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && error.code === ERROR.GROUP_AUTHORIZATION_FAILED
  );
}

/** A line that says what is missing, and the command that grants it. */
export function missingRightsText(
  { resource, name, isPrefix, operations }: MissingRights,
  user: string,
): string {
  const grants = operations.map((each) => `--operation ${each}`).join(' ');
  const prefix = isPrefix ? ' --resource-pattern-type prefixed' : '';
  return `this user lacks ${operations.join(', ')} on the ${resource.replace('-', ' ')} ${name}${isPrefix ? '*' : ''}: kafka-acls.sh --bootstrap-server "$KAFKA_BROKERS" --add --allow-principal User:${user} ${grants} --${resource} ${name}${prefix}`;
}

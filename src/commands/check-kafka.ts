import type { ConfigWith } from '../config/config.ts';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { openKafkaProducer } from '../sinks/producer/kafka-producer.ts';
import {
  missingGroupRights,
  missingRightsText,
  missingTopicRights,
} from '../sinks/topics/missing-rights.ts';
import type { MissingRights } from '../sinks/topics/missing-rights.ts';
import { inspectTopics } from '../sinks/topics/kafka-topics.ts';
import type { TopicsOptions } from '../sinks/topics/kafka-topics.ts';
import type { TopicFinding } from '../schemas/events/topic-findings.ts';
import { tryCheck } from './findings.ts';
import type { Finding } from './findings.ts';

interface KafkaChecks {
  readonly config: ConfigWith<'kafka'>;
  /** Topics that the service writes to, and their cluster. */
  readonly topics: TopicsOptions;
  /** Id of the fleet's Kafka group. Default: no group is checked. */
  readonly group?: string;
  /**
   * Called once the existing topics are found to be usable, with the names of the topics that do not exist yet. If it rejects, the check of
   * Kafka fails with the error's text.
   */
  readonly checkMore?: (absent: readonly string[]) => Promise<void>;
}

interface CheckedKafka {
  readonly findings: readonly Finding[];
  /** Doubtful settings of topics that exist. */
  readonly warnings: readonly TopicFinding[];
  /** Whether Kafka has responded, so that further checks make sense. */
  readonly isAnswering: boolean;
}

/**
 * Checks that Kafka responds, that `run` can use the existing topics, and what else `run` requires: rights (ACLs), transactions, and the
 * Kafka group of a fleet.
 */
export async function checkKafka(checks: KafkaChecks): Promise<CheckedKafka> {
  let warnings: readonly TopicFinding[] = [];
  let isAnswering = true;
  const finding = await tryCheck('kafka', async () => {
    const inspected = await inspectTopics(checks.topics).catch((error: unknown) => {
      isAnswering = isTopicProblem(error);
      throw error;
    });
    const { brokers, absent } = inspected;
    ({ warnings } = inspected);
    await checks.checkMore?.(absent);
    const rest =
      absent.length > 0
        ? `\`cellarstream run\` will create ${absent.join(', ')}`
        : 'all topics exist';
    return `${brokers} broker${brokers === 1 ? '' : 's'}; ${rest}`;
  });
  const rights = isAnswering ? await checkRights(checks) : [];
  return { findings: [finding, ...rights], warnings, isAnswering };
}

/** Whether an error concerns only topics. Such an error shows that Kafka has responded, so the other checks can go on. */
function isTopicProblem(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  return error.code === 'TOPIC_SETTINGS' || error.context.concerns === 'topic';
}

/** Checks rights, transactions, and the group of a fleet. Returns the findings, including one for each missing right. */
async function checkRights(checks: KafkaChecks): Promise<readonly Finding[]> {
  const { topics, group } = checks;
  const [transactions, ofGroup, rights] = await Promise.all([
    checkTransactions(checks),
    group === undefined ? [] : missing('group', checks, () => missingGroupRights(topics, group)),
    missing('rights', checks, () => missingTopicRights(topics, topics.topics(1))),
  ]);
  const isJoinable = group !== undefined && ofGroup.length === 0;
  const joinable = { what: 'group', fine: true, detail: `${group} can be joined` };
  return [transactions, ...(isJoinable ? [joinable] : ofGroup), ...rights];
}

/** Returns a failed finding for each missing right (ACL) that `work` resolves to. If `work` rejects, returns one with the error's text. */
async function missing(
  what: string,
  { config }: KafkaChecks,
  work: () => Promise<readonly MissingRights[]>,
): Promise<readonly Finding[]> {
  try {
    const found = await work();
    return found.map((each) => failure(what, missingRightsText(each, userOf(config))));
  } catch (error) {
    return [failure(what, describeError(error))];
  }
}

function failure(what: string, detail: string): Finding {
  return { what, fine: false, detail };
}

/** Checks whether a transaction can be opened. Its transactional id has the prefix for which `run` needs rights. */
async function checkTransactions({ config, topics }: KafkaChecks): Promise<Finding> {
  const prefix = `cellarstream.${config.topics.sharedPrefix}.`;
  try {
    const producer = await openKafkaProducer({
      kafka: topics.kafka,
      connections: topics.connections,
      // Fences no running service: no service's id has a `/` directly after a dot (`pipeline/task.ts`).
      transactionalId: `${prefix}/check`,
      partitions: new Map(),
    });
    await producer.close();
    return { what: 'commits', fine: true, detail: 'a transaction can be opened' };
  } catch (error) {
    if (!isNotAllowed(error)) return failure('commits', describeError(error));
    const operations = ['Describe', 'Write'];
    const lacking = {
      resource: 'transactional-id',
      name: prefix,
      isPrefix: true,
      operations,
    } as const;
    return failure('commits', missingRightsText(lacking, userOf(config)));
  }
}

function isNotAllowed(error: unknown): boolean {
  if (!(error instanceof CellarstreamError) || !(error.cause instanceof Error)) return false;
  const { cause } = error;
  return 'type' in cause && cause.type === 'TRANSACTIONAL_ID_AUTHORIZATION_FAILED';
}

/** Returns the user name for the suggested ACL commands; `NAME` if the settings have none. */
function userOf({ kafka: { sasl } }: ConfigWith<'kafka'>): string {
  return sasl && 'username' in sasl ? sasl.username : 'NAME';
}

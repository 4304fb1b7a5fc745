import type { ConfigWith } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
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

interface CheckedKafka {
  readonly finding: Finding;
  /** Doubtful settings of topics that exist. */
  readonly warnings: readonly TopicFinding[];
  /** Whether Kafka has responded, so that further checks make sense. */
  readonly isAnswering: boolean;
}

/**
 * Checks that Kafka responds, and that `run` can use the existing topics.
 *
 * @param checkMore Called, after these checks have succeeded, with the names of the topics that do not exist yet. If it rejects, the
 * finding is a failure with that error's text.
 */
export async function checkKafka(
  topics: TopicsOptions,
  checkMore?: (absent: readonly string[]) => Promise<void>,
): Promise<CheckedKafka> {
  let warnings: readonly TopicFinding[] = [];
  let isAnswering = true;
  const finding = await tryCheck('kafka', async () => {
    const inspected = await inspectTopics(topics).catch((error: unknown) => {
      isAnswering = isTopicProblem(error);
      throw error;
    });
    const { brokers, absent } = inspected;
    ({ warnings } = inspected);
    await checkMore?.(absent);
    const rest =
      absent.length > 0
        ? `\`cellarstream run\` will create ${absent.join(', ')}`
        : 'all topics exist';
    return `${brokers} broker${brokers === 1 ? '' : 's'}; ${rest}`;
  });
  return { finding, warnings, isAnswering };
}

/** Whether an error concerns only topics. Kafka has then responded, so the other checks can go on. */
function isTopicProblem(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  return error.code === 'TOPIC_SETTINGS' || error.context.concerns === 'topic';
}

interface KafkaChecks {
  readonly config: ConfigWith<'kafka'>;
  /** Topics that the service writes to, and their cluster. */
  readonly topics: TopicsOptions;
  /** Id of the fleet's Kafka group. Default: no group is checked. */
  readonly group?: string;
}

/**
 * Checks what `run` requires of Kafka apart from usable topics: rights (ACLs), transactions, and the Kafka group of a fleet. Returns the
 * findings, including one for each missing right.
 */
export async function checkRights(checks: KafkaChecks): Promise<readonly Finding[]> {
  const [rights, transactions, group] = await Promise.all([
    missing(checks, () => missingTopicRights(checks.topics, checks.topics.topics(1))),
    checkTransactions(checks),
    checks.group === undefined ? [] : checkGroup(checks, checks.group),
  ]);
  return [...transactions, ...group, ...rights];
}

async function missing(
  { config }: KafkaChecks,
  work: () => Promise<readonly MissingRights[]>,
): Promise<readonly Finding[]> {
  let found: readonly MissingRights[] = [];
  const finding = await tryCheck('rights', async () => {
    found = await work();
    return '';
  });
  if (!finding.fine) return [finding];
  return found.map((each) => ({
    what: 'rights',
    fine: false,
    detail: missingRightsText(each, userOf(config)),
  }));
}

/**
 * Checks transactions by opening one with a transactional id that no service uses, so that no running service is fenced. The ids of
 * services never have `/` after the last dot (`pipeline/task.ts`). The id begins with the prefix for which rights are granted.
 */
async function checkTransactions({ config, topics }: KafkaChecks): Promise<readonly Finding[]> {
  const prefix = `cellarstream.${config.topics.prefix}.`;
  let lacking: MissingRights | undefined;
  const tried = await tryCheck('commits', async () => {
    try {
      const producer = await openKafkaProducer({
        kafka: topics.kafka,
        connections: topics.connections,
        transactionalId: `${prefix}/check`,
        partitions: new Map(),
      });
      await producer.close();
    } catch (error) {
      if (!isNotAllowed(error)) throw error;
      const operations = ['Describe', 'Write'];
      lacking = { resource: 'transactional-id', name: prefix, isPrefix: true, operations };
    }
    return 'a transaction can be opened';
  });
  if (!lacking) return [tried];
  return [{ ...tried, fine: false, detail: missingRightsText(lacking, userOf(config)) }];
}

async function checkGroup(checks: KafkaChecks, group: string): Promise<readonly Finding[]> {
  const found = await missing(checks, () => missingGroupRights(checks.topics, group));
  if (found.length > 0) return found.map((each) => ({ ...each, what: 'group' }));
  return [{ what: 'group', fine: true, detail: `${group} can be joined` }];
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

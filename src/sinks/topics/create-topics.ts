// Creates topics, without those settings that brokers refuse and that are only wished.

import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import type { TopicFinding } from '../../schemas/events/topic-findings.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import type { Brokers, Asked } from '../client/brokers.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, nameOfError, protocolError } from '../client/protocol-errors.ts';
import { askBrokers } from '../client/brokers.ts';
import { array, int16, int32, int8, string } from '../client/protocol.ts';
import type { Call } from '../client/protocol.ts';
import { metadata } from '../client/topic-calls.ts';

interface CreationOptions extends Asked {
  readonly specs: readonly TopicSpec[];
  /** Whether the brokers may choose another replication factor, as `TOPIC_REPLICATION` is not set. */
  readonly isReplicationFree: boolean;
  /** Whether the brokers only say what would become of the topics, and make none. */
  readonly isDryRun: boolean;
}

/** A setting that was left out because the brokers refuse it. */
export type LeftOut = Pick<TopicFinding, 'topic' | 'setting' | 'wanted' | 'why'>;

/** How long the controller is looked for, ms. */
const WITHIN_MS = 10_000;

/**
 * Creates topics. Where the brokers refuse settings that are only wished ({@link TopicSpec.required}), the topic is made without
 * them: without those that the brokers name, or without all wishes where they name none. Gives what was left out.
 *
 * @throws CellarstreamError `KAFKA_REFUSED` with the topics, what they need, and the brokers' own words; `KAFKA_UNREACHABLE`.
 */
export async function createTopics(options: CreationOptions): Promise<readonly LeftOut[]> {
  const { specs, isReplicationFree, isDryRun } = options;
  const leftOut: LeftOut[] = [];
  let drafts: readonly Draft[] = specs.map((spec) => ({ ...spec, spec }));
  while (drafts.length > 0) {
    const answers = await askBrokers(options, WITHIN_MS, (brokers) =>
      askedOnce(brokers, drafts, isDryRun),
    );
    const refusals = drafts.flatMap((draft) => {
      const answer = answers.find(({ topic }) => topic === draft.topic);
      return answer && !DONE.has(answer.errorCode) ? [{ draft, answer }] : [];
    });
    const tries = refusals.map(({ draft, answer }) => ({
      refusal: { draft, answer },
      wishes: refusedWishes(draft, answer, isReplicationFree),
    }));
    const final = tries.filter(({ wishes }) => wishes.length === 0);
    if (final.length > 0) throw refused(final.map(({ refusal }) => refusal));
    drafts = tries.map(({ refusal: { draft, answer }, wishes }) => {
      for (const { name, value } of wishes) {
        const why = `the brokers refuse it: ${wordsOf(answer)}`;
        leftOut.push({ topic: draft.topic, setting: name, wanted: value, why });
      }
      return without(draft, wishes);
    });
  }
  return leftOut;
}

/** A topic as it is tried next. */
interface Draft extends NewTopic {
  readonly spec: TopicSpec;
}

interface Refusal {
  readonly draft: Draft;
  readonly answer: TopicAnswer;
}

interface Wish {
  readonly name: string;
  readonly value: string;
}

const DONE: ReadonlySet<number> = new Set([0, ERROR.TOPIC_ALREADY_EXISTS]); // another instance was quicker
const NO_RIGHT: ReadonlySet<number> = new Set([
  ERROR.TOPIC_AUTHORIZATION_FAILED,
  ERROR.CLUSTER_AUTHORIZATION_FAILED,
]);
/** Answers that another draft of the topic, other rights or other settings can change, and no later try of the same. */
const FINAL: ReadonlySet<number> = new Set([
  ...NO_RIGHT,
  ...[ERROR.INVALID_TOPIC_EXCEPTION, ERROR.INVALID_PARTITIONS, ERROR.INVALID_REPLICATION_FACTOR],
  ...[ERROR.INVALID_CONFIG, ERROR.POLICY_VIOLATION],
]);
const OF_SETTINGS: ReadonlySet<number> = new Set([
  ERROR.INVALID_CONFIG,
  ERROR.POLICY_VIOLATION,
  ERROR.INVALID_REPLICATION_FACTOR,
]);
const REPLICATION = 'replication.factor';
const IN_SYNC = 'min.insync.replicas';

/** Sends one CreateTopics request. @throws kafkajs' error of an answer that is not {@link FINAL} and that a later try may change. */
async function askedOnce(
  brokers: Brokers,
  drafts: readonly Draft[],
  isDryRun: boolean,
): Promise<readonly TopicAnswer[]> {
  const found = await brokers.askAny(metadata([]));
  const controller = found.brokers.find(({ id }) => id === found.controllerId);
  if (!controller) throw protocolError(ERROR.NOT_CONTROLLER, 'no broker is the controller');
  const answers = await brokers.ask(controller, createTopicsCall(drafts, isDryRun));
  for (const answer of answers) {
    const { topic, errorCode, message } = answer;
    if (DONE.has(errorCode) || FINAL.has(errorCode)) continue;
    const error = protocolError(
      errorCode,
      `CreateTopics of ${topic}${message ? ` (${message})` : ''}`,
    );
    if (isRetryable(kafkaError(error))) throw error;
  }
  return answers;
}

/** Wishes to leave out after a refusal; none where no draft without wishes can help. */
function refusedWishes(
  { topic, configEntries, replicationFactor, spec }: Draft,
  { errorCode, message }: TopicAnswer,
  isReplicationFree: boolean,
): readonly Wish[] {
  if (!OF_SETTINGS.has(errorCode)) return [];
  const text = (message ?? '').replaceAll(topic, '');
  const wishes = configEntries.filter(({ name }) => !spec.required.includes(name));
  const replication =
    isReplicationFree && replicationFactor !== BROKER_DEFAULT
      ? [{ name: REPLICATION, value: String(replicationFactor) }]
      : [];
  if (
    replication.length > 0 &&
    (errorCode === ERROR.INVALID_REPLICATION_FACTOR || /replication/i.test(text))
  ) {
    // `min.insync.replicas` was chosen for the wanted number of replicas, so it is left out together with that number.
    return [...replication, ...wishes.filter(({ name }) => name === IN_SYNC)];
  }
  if (errorCode === ERROR.INVALID_REPLICATION_FACTOR) return [];
  const named = wishes.filter(({ name }) => text.includes(name));
  if (named.length > 0) return named;
  return wishes.length > 0 ? wishes : replication;
}

function without(draft: Draft, wishes: readonly Wish[]): Draft {
  const names = new Set(wishes.map(({ name }) => name));
  return {
    ...draft,
    configEntries: draft.configEntries.filter(({ name }) => !names.has(name)),
    ...(names.has(REPLICATION) && { replicationFactor: BROKER_DEFAULT }),
  };
}

function wordsOf({ errorCode, message }: TopicAnswer): string {
  const name = nameOfError(errorCode);
  return message ? `${name}: ${message}` : name;
}

/** One line for all topics that can't be made: those that lack a right together, as one ACL mends them. */
function refused(refusals: readonly Refusal[]): CellarstreamError {
  const lacking = refusals.filter(({ answer }) => NO_RIGHT.has(answer.errorCode));
  const others = refusals.filter(({ answer }) => !NO_RIGHT.has(answer.errorCode));
  const parts = others.map(
    ({ draft, answer }) =>
      `Kafka refuses to make the topic ${draft.topic} (${wordsOf(answer)}): ${adviceOf(draft, answer)}`,
  );
  if (lacking.length > 0) parts.push(lackingText(lacking));
  return new CellarstreamError('KAFKA_REFUSED', parts.join('; '), {
    context: { concerns: 'topic', topic: refusals[0]!.draft.topic },
  });
}

function lackingText(lacking: readonly Refusal[]): string {
  const names = lacking.map(({ draft }) => draft.topic).join(', ');
  return `this user may not make topics (${nameOfError(lacking[0]!.answer.errorCode)}), and these are not there, or not shown to it: ${names}. Allow it Create and Describe on them, or have them made beforehand: ${lacking.map(({ draft }) => wantedText(draft.spec)).join('; ')}`;
}

function adviceOf({ spec }: Draft, { errorCode, message }: TopicAnswer): string {
  const text = message ?? '';
  if (errorCode === ERROR.INVALID_TOPIC_EXCEPTION) {
    return 'a topic may not have that name, or is internal: set another TOPIC_PREFIX';
  }
  if (errorCode === ERROR.INVALID_REPLICATION_FACTOR || /replication/i.test(text)) {
    return 'set TOPIC_REPLICATION to what the cluster allows, no more than the number of its brokers';
  }
  const beforehand = `have it made beforehand: ${wantedText(spec)}`;
  if (errorCode !== ERROR.INVALID_PARTITIONS && !/partition/i.test(text)) {
    return `ask who runs the cluster, or ${beforehand}`;
  }
  return spec.fixedPartitions ? beforehand : `set TOPIC_PARTITIONS to what the cluster allows`;
}

/** A topic for an administrator who makes it by hand. */
function wantedText({ topic, numPartitions, configEntries, required }: TopicSpec): string {
  const text = (isRequired: boolean) =>
    configEntries
      .filter(({ name }) => required.includes(name) === isRequired)
      .map(({ name, value }) => `${name}=${value}`)
      .join(', ');
  const partitions = `${numPartitions} partition${numPartitions === 1 ? '' : 's'}`;
  return `${topic} (${partitions}, ${text(true)}; if possible ${text(false)})`;
}

/** A topic to be created. */
interface NewTopic {
  readonly topic: string;
  readonly numPartitions: number;
  /** {@link BROKER_DEFAULT}: as many as the brokers give by default. */
  readonly replicationFactor: number;
  readonly configEntries: readonly { readonly name: string; readonly value: string }[];
}

/** Lets the brokers choose the replication factor (KIP-464). */
const BROKER_DEFAULT = -1;

/** Result of the request to create one topic. */
export interface TopicAnswer {
  readonly topic: string;
  readonly errorCode: number;
  /** The broker's words. */
  readonly message: string | null;
}

/** For the controller. @param isDryRun Whether it only says what would come of it. */
function createTopicsCall(
  topics: readonly NewTopic[],
  isDryRun: boolean,
): Call<readonly TopicAnswer[]> {
  const WITHIN_MS = 8_000; // less than the answer may take
  return {
    name: 'CreateTopics',
    key: 19,
    version: 4,
    body: Buffer.concat([
      array(topics, ({ topic, numPartitions, replicationFactor, configEntries }) =>
        Buffer.concat([
          string(topic),
          int32(numPartitions),
          int16(replicationFactor),
          array([], int32), // brokers by partition: they choose
          array(configEntries, ({ name, value }) => Buffer.concat([string(name), string(value)])),
        ]),
      ),
      int32(WITHIN_MS),
      int8(isDryRun ? 1 : 0),
    ]),
    read: (answer) =>
      answer.array(() => ({
        topic: answer.string()!,
        errorCode: answer.int16(),
        message: answer.string(),
      })),
  };
}

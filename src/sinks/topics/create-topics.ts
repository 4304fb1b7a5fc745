// Creates topics, and leaves out optional settings that the brokers refuse.

import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { KAFKA_LIMITS } from '../../core/retries.ts';
import type { TopicFinding } from '../../schemas/events/topic-findings.ts';
import type { TopicSpec } from '../../schemas/events/topics.ts';
import type { Brokers, ClusterAccess } from '../../kafka/client/brokers.ts';
import { kafkaError } from '../../kafka/client/kafka-error.ts';
import { ERROR, nameOfError, protocolError } from '../../kafka/client/protocol-errors.ts';
import { withBrokers } from '../../kafka/client/brokers.ts';
import { array, createCall, int16, int32, int8, string } from '../../kafka/client/protocol.ts';
import type { Call } from '../../kafka/client/protocol.ts';
import { metadata } from '../../kafka/client/topic-calls.ts';

interface CreationOptions extends ClusterAccess {
  readonly specs: readonly TopicSpec[];
  /** The setting `TOPIC_REPLICATION`. Undefined: if the brokers refuse the factor in a spec, its topic gets their default. */
  readonly replication: number | undefined;
  /** Whether the brokers only validate the request and create no topics. */
  readonly isDryRun: boolean;
}

/** A setting that was left out when a topic was created, because the brokers refuse it. */
export type OmittedSetting = Pick<TopicFinding, 'topic' | 'setting' | 'wanted' | 'why'>;

/**
 * Creates topics, and returns the optional settings that were left out because the brokers refuse them. Settings that are not in
 * {@link TopicSpec.required} are optional, and so is the replication factor if `TOPIC_REPLICATION` is not set.
 *
 * @throws CellarstreamError `KAFKA_REFUSED`, with the topics, the settings that they need, and the brokers' messages; `KAFKA_UNREACHABLE`.
 */
export async function createTopics(options: CreationOptions): Promise<readonly OmittedSetting[]> {
  const { specs, isDryRun } = options;
  const isReplicationFree = options.replication === undefined;
  const leftOut: OmittedSetting[] = [];
  let drafts: readonly TopicDraft[] = specs.map((spec) => ({ ...spec, spec }));
  while (drafts.length > 0) {
    const answers = await withBrokers(options, KAFKA_LIMITS.query, (brokers) =>
      sendCreateTopics(brokers, drafts, isDryRun),
    );
    const refused = drafts.flatMap((draft) => {
      const answer = answers.find(({ topic }) => topic === draft.topic);
      if (!answer || DONE.has(answer.errorCode)) return [];
      const optional = refusedOptionalSettings(draft, answer, isReplicationFree);
      return [{ draft, answer, optional }];
    });
    const final = refused.filter(({ optional }) => optional.length === 0);
    if (final.length > 0) throw topicsRefusedError(final);
    for (const { draft, answer, optional } of refused) {
      const why = `the brokers refuse this setting: ${refusalText(answer)}`;
      for (const { name, value } of optional) {
        leftOut.push({ topic: draft.topic, setting: name, wanted: value, why });
      }
    }
    drafts = refused.map(({ draft, optional }) => withoutSettings(draft, optional));
  }
  return leftOut;
}

/** A topic with the settings to use in the next attempt to create it. */
interface TopicDraft extends TopicSpec {
  /** The topic with all requested settings. The draft itself lacks the settings that were left out after brokers refused them. */
  readonly spec: TopicSpec;
}

interface Refusal {
  readonly draft: TopicDraft;
  readonly answer: TopicResult;
}

type Setting = TopicSpec['configEntries'][number];

const DONE: ReadonlySet<number> = new Set([0, ERROR.TOPIC_ALREADY_EXISTS]); // another instance created it first
/** Error codes with which brokers refuse a request about a topic because this client's user lacks a right. */
export const UNAUTHORIZED_CODES: ReadonlySet<number> = new Set([
  ERROR.TOPIC_AUTHORIZATION_FAILED,
  ERROR.CLUSTER_AUTHORIZATION_FAILED,
]);
/** CreateTopics error codes that are not retried, as the same request would fail again. Other settings or rights can resolve them. */
const FINAL: ReadonlySet<number> = new Set([
  ...UNAUTHORIZED_CODES,
  ...[ERROR.INVALID_TOPIC_EXCEPTION, ERROR.INVALID_PARTITIONS, ERROR.INVALID_REPLICATION_FACTOR],
  ...[ERROR.INVALID_CONFIG, ERROR.POLICY_VIOLATION],
]);
/** Error codes of CreateTopics that an optional setting may have caused. */
const OF_SETTINGS: ReadonlySet<number> = new Set([
  ERROR.INVALID_CONFIG,
  ERROR.POLICY_VIOLATION,
  ERROR.INVALID_REPLICATION_FACTOR,
]);
const REPLICATION = 'replication.factor';
const IN_SYNC = 'min.insync.replicas';

/** Sends one CreateTopics request. @throws kafkajs' error for a retryable error code that is not in {@link FINAL}. */
async function sendCreateTopics(
  brokers: Brokers,
  drafts: readonly TopicDraft[],
  isDryRun: boolean,
): Promise<readonly TopicResult[]> {
  const found = await brokers.sendToAny(metadata([]));
  const controller = found.brokers.find(({ id }) => id === found.controllerId);
  if (!controller) throw protocolError(ERROR.NOT_CONTROLLER, 'no broker is the controller');
  const answers = await brokers.send(controller, createTopicsCall(drafts, isDryRun));
  for (const answer of answers) {
    const { topic, errorCode, message } = answer;
    if (DONE.has(errorCode) || FINAL.has(errorCode)) continue;
    const reason = message ? ` (${message})` : '';
    const error = protocolError(errorCode, `CreateTopics of ${topic}${reason}`);
    if (isRetryable(kafkaError(error))) throw error;
  }
  return answers;
}

/** Returns the optional settings to leave out after brokers refused to create a topic; none if leaving out optional settings can't help. */
function refusedOptionalSettings(
  { topic, configEntries, replicationFactor, spec }: TopicDraft,
  { errorCode, message }: TopicResult,
  isReplicationFree: boolean,
): readonly Setting[] {
  if (!OF_SETTINGS.has(errorCode)) return [];
  const text = (message ?? '').replaceAll(topic, '');
  const optional = configEntries.filter(({ name }) => !spec.required.includes(name));
  const isInvalidReplication = errorCode === ERROR.INVALID_REPLICATION_FACTOR;
  const replication =
    isReplicationFree && replicationFactor !== BROKER_DEFAULT
      ? [{ name: REPLICATION, value: String(replicationFactor) }]
      : [];
  if (replication.length > 0 && (isInvalidReplication || /replication/i.test(text))) {
    // `min.insync.replicas` was chosen for the wanted number of replicas, so it is left out together with that number.
    return [...replication, ...optional.filter(({ name }) => name === IN_SYNC)];
  }
  if (isInvalidReplication) return [];
  const named = optional.filter(({ name }) => text.includes(name));
  if (named.length > 0) return named;
  // The brokers name no optional setting, so all of them are left out; if that does not suffice, the replication factor too.
  return optional.length > 0 ? optional : replication;
}

function withoutSettings(draft: TopicDraft, optional: readonly Setting[]): TopicDraft {
  const names = new Set(optional.map(({ name }) => name));
  return {
    ...draft,
    configEntries: draft.configEntries.filter(({ name }) => !names.has(name)),
    ...(names.has(REPLICATION) && { replicationFactor: BROKER_DEFAULT }),
  };
}

function refusalText({ errorCode, message }: TopicResult): string {
  const name = nameOfError(errorCode);
  return message ? `${name}: ${message}` : name;
}

/**
 * Creates one error for all topics that can't be created. Topics for which a right is missing are listed together, because one ACL can
 * grant it for all.
 */
function topicsRefusedError(refusals: readonly Refusal[]): CellarstreamError {
  const lacking = refusals.filter(({ answer }) => UNAUTHORIZED_CODES.has(answer.errorCode));
  const others = refusals.filter(({ answer }) => !UNAUTHORIZED_CODES.has(answer.errorCode));
  const parts = others.map(
    ({ draft, answer }) =>
      `Kafka refuses to create the topic ${draft.topic} (${refusalText(answer)}): ${adviceOf(draft, answer)}`,
  );
  if (lacking.length > 0) parts.push(lackingText(lacking));
  return new CellarstreamError('KAFKA_REFUSED', parts.join('; '), {
    context: { concerns: 'topic', topic: refusals[0]!.draft.topic },
  });
}

function lackingText(lacking: readonly Refusal[]): string {
  const names = lacking.map(({ draft }) => draft.topic).join(', ');
  return `this user may not create topics (${nameOfError(lacking[0]!.answer.errorCode)}), and these do not exist or are not visible to it: ${names}. Allow it Create and Describe on them, or have them created beforehand: ${lacking.map(({ draft }) => wantedText(draft.spec)).join('; ')}`;
}

function adviceOf({ spec }: TopicDraft, { errorCode, message }: TopicResult): string {
  const text = message ?? '';
  if (errorCode === ERROR.INVALID_TOPIC_EXCEPTION) {
    return 'the name of the topic is not allowed, or is that of an internal topic: set another TOPIC_PREFIX';
  }
  if (errorCode === ERROR.INVALID_REPLICATION_FACTOR || /replication/i.test(text)) {
    return 'set TOPIC_REPLICATION to what the cluster allows, no more than the number of its brokers';
  }
  const beforehand = `have it created beforehand: ${wantedText(spec)}`;
  if (errorCode !== ERROR.INVALID_PARTITIONS && !/partition/i.test(text)) {
    return `ask the operator of the cluster, or ${beforehand}`;
  }
  return spec.fixedPartitions ? beforehand : `set TOPIC_PARTITIONS to what the cluster allows`;
}

/** Returns a description of a topic for an administrator who creates the topic by hand. */
function wantedText({ topic, numPartitions, configEntries, required }: TopicSpec): string {
  const text = (isRequired: boolean) =>
    configEntries
      .filter(({ name }) => required.includes(name) === isRequired)
      .map(({ name, value }) => `${name}=${value}`)
      .join(', ');
  const partitions = `${numPartitions} partition${numPartitions === 1 ? '' : 's'}`;
  return `${topic} (${partitions}, ${text(true)}; if possible ${text(false)})`;
}

/** Value of the replication factor in CreateTopics that stands for the brokers' default (KIP-464). */
const BROKER_DEFAULT = -1;

export interface TopicResult {
  readonly topic: string;
  readonly errorCode: number;
  readonly message: string | null;
}

function createTopicsCall(
  topics: readonly TopicDraft[],
  isDryRun: boolean,
): Call<readonly TopicResult[]> {
  const WITHIN_MS = 8_000; // less than the response timeout
  const asked = array(topics, ({ topic, numPartitions, replicationFactor, configEntries }) => [
    string(topic),
    int32(numPartitions),
    int16(replicationFactor),
    array([], int32), // replica assignment: the brokers choose it
    array(configEntries, ({ name, value }) => [string(name), string(value)]),
  ]);
  return createCall('CreateTopics', [asked, int32(WITHIN_MS), int8(isDryRun ? 1 : 0)], (answer) =>
    answer.array(() => ({
      topic: answer.string()!,
      errorCode: answer.int16(),
      message: answer.string(),
    })),
  );
}

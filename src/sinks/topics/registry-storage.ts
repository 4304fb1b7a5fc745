import type { TopicFinding } from '../../schemas/events/topic-findings.ts';
import { isUnsupported } from '../client/kafka-error.ts';
import { askBrokers } from '../producer/ask-brokers.ts';
import type { Asked } from '../producer/ask-brokers.ts';
import { describeSettings } from './topic-calls.ts';

/** Default names of the topics in which registries keep schemas: Apicurio with KafkaSQL, and Confluent's and Karapace. */
const STORAGE_TOPICS = ['kafkasql-journal', '_schemas'];
const LIMITS = ['retention.ms', 'retention.bytes'];
/** How long an answer of the brokers is waited for, in ms. */
const PATIENCE_MS = 1_000;

/**
 * Warnings about a registry's storage topic in this cluster whose retention deletes schemas: after a restart the registry gives their ids to
 * other schemas. Topics that are absent, or whose settings this user may not read, give none.
 */
export async function registryStorageFindings(asked: Asked): Promise<readonly TopicFinding[]> {
  const answers = await askBrokers(asked, PATIENCE_MS, (brokers) =>
    brokers.askAny(describeSettings(STORAGE_TOPICS, ['cleanup.policy', ...LIMITS])),
  ).catch((error: unknown) => {
    if (isUnsupported(error)) return [];
    throw error;
  });
  return answers
    .filter(({ settings }) => settings.get('cleanup.policy')?.includes('delete'))
    .flatMap(({ topic, settings }) =>
      LIMITS.flatMap((setting) => {
        const found = settings.get(setting) ?? '-1';
        const why =
          'the schema registry keeps its schemas in this topic, and forgets those that Kafka deletes';
        return Number(found) < 0
          ? []
          : [{ topic, setting, found, wanted: '-1', why, isRefused: false }];
      }),
    );
}

import { VERSION } from '../core/version.ts';
import { listsNamed } from '../description/description.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { asyncApiDocument } from '../schemas/events/asyncapi.ts';
import { eventTopics, keySubject, topicNames, valueSubject } from '../schemas/events/topics.ts';
import { openKafkaClients } from '../sinks/open-kafka.ts';
import { oneAccount, processSource } from './one-account.ts';

/** `cellarstream asyncapi`: prints an AsyncAPI document of the account's topics as JSON, with the schemas from the registry. */
export async function asyncApiCommand({ account }: { readonly account?: string }): Promise<void> {
  const source = processSource();
  const config = oneAccount(source, account, ['kafka', 'registry']);
  const log = kafkaLogCreator(await createLogger({ level: config.logLevel }));
  const { registry, connections } = openKafkaClients(config, { log });
  const { resources, kafka, description } = config;
  const lists = listsNamed(description, resources);
  const { prefix } = config.topics;
  const names = topicNames(prefix);
  const topics = [...eventTopics(names, lists), names.deadLetters];
  try {
    const latest = async (subject: string) => (await registry.latest(subject))?.schema;
    const schemas = new Map(
      await Promise.all(
        topics.map(async (topic) => {
          const [key, value] = await Promise.all(
            [keySubject, valueSubject].map((of) => latest(of(topic))),
          );
          return [topic, { key: config.keyFormat === 'avro' ? key : undefined, value }] as const;
        }),
      ),
    );
    const document = asyncApiDocument({
      ...{ prefix, lists, version: VERSION },
      brokers: kafka.brokers,
      isTls: kafka.ssl !== false,
      registryUrl: config.registry.url,
      schemasOf: (topic) => schemas.get(topic)!,
    });
    process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
  } finally {
    connections.close();
    await registry.close();
  }
}

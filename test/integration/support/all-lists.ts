import { Kafka, logLevel } from 'kafkajs';
import { expect, inject, vi } from 'vitest';
import { RESOURCES } from '../../../src/sandbox/index.ts';
import type { Resource, Sandbox } from '../../../src/sandbox/index.ts';
import { readTail } from '../../../src/kafka/fetch/kafka-tail.ts';
import type { TailMessage } from '../../../src/kafka/log.ts';
import type { Cli, LogLine } from './cli.ts';
import { checkRecords } from './checker.ts';
import { PATIENCE_MS } from './running-test.ts';
import { folderForTest, settings } from './service.ts';
import type { Env } from './service.ts';
import { topicEnds } from './topic-ends.ts';
import type { Read } from './topic-reader.ts';

/** Records of the sandbox in tests of all lists. */
export const FEW = {
  orders: 30,
  customers: 25,
  inventory: 20,
  'wine-clubs': 4,
  'wine-club-members': 15,
  products: 12,
};
const PATIENCE = { timeout: PATIENCE_MS };
/** A kafkajs client of the tests' brokers. */
export const kafka = () => new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });

/** The settings of `run`, with all resources unless some are named. */
export function settingsFor(
  sandbox: Sandbox,
  prefix: string,
  resources?: readonly Resource[],
): Env {
  const named = resources ? resources.join() : ''; // empty is as good as not set
  const env = settings(sandbox, prefix, folderForTest());
  return { ...env, RESOURCES: named, LOG_LEVEL: 'debug' };
}

/** Log lines of an event; of one list, if it is named. */
export const linesOf = (service: Cli, event: string, resource?: Resource) =>
  service
    .lines()
    .filter((line) => line.event === event && (!resource || line.resource === resource));

export const isOf = (event: string, resource: Resource) => (line: LogLine) =>
  line.event === event && line.resource === resource;

/** Resolves when each list has been ready. */
export async function allReady(
  service: Cli,
  resources: readonly Resource[] = RESOURCES,
): Promise<void> {
  await Promise.all(resources.map((resource) => service.logged(isOf('ready', resource))));
}

/** Resolves when a topic's last images are what the sandbox says. */
export async function tells(
  events: readonly Read[],
  truth: () => ReadonlyMap<string, unknown>,
): Promise<void> {
  await vi.waitFor(() => expect(checkRecords(events, truth()).violations).toEqual([]), PATIENCE);
}

/** The newest cursor of each task. */
export async function cursors(prefix: string): Promise<Record<string, Record<string, unknown>>> {
  const found: Record<string, Record<string, unknown>> = {};
  const topic = `${prefix}.cursors`;
  for (const { key, value } of await messagesOf(topic)) {
    found[key!.toString()] = JSON.parse(value!.toString()) as Record<string, unknown>;
  }
  return found;
}

/** All committed messages of a topic. */
export async function messagesOf(topic: string): Promise<readonly TailMessage[]> {
  const messages: TailMessage[] = [];
  await readTail({
    ...{ kafka: kafka(), topic, from: new Map(), to: await topicEnds(kafka(), topic) },
    onMessages: (read) => Promise.resolve(void messages.push(...read)),
  });
  return messages;
}

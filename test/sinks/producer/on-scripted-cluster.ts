import type { KafkaConfig } from 'kafkajs';
import { afterEach, expect, onTestFinished, vi } from 'vitest';
import { openKafkaProducer } from '../../../src/sinks/producer/kafka-producer.ts';
import { partitionOf } from '../../../src/sinks/producer/record-batch.ts';
import type { Message } from '../../../src/sinks/sink.ts';
import { kafkaOf, ScriptedCluster } from '../../support/scripted-cluster.ts';
import type { ScriptedClusterOptions } from '../../support/scripted-cluster.ts';
import type { Api } from '../../support/scripted-cluster/protocol.ts';

export { kafkaOf };

export const TOPIC = 'orders';
export const PARTITIONS = 6;
/**
 * Longest wait for an answer in tests of answers that never come, in ms. Too small: answers that do come are given up on a busy
 * machine, and the test counts a repeated request. Too large: the tests take long.
 */
export const SHORT_MS = 500;

const clusters: ScriptedCluster[] = [];

/** To be called once in a file: servers go, and none may have got what no Kafka would take. */
export function checkServers(): void {
  afterEach(async () => {
    const closed = clusters.splice(0);
    for (const cluster of closed) await cluster.close();
    expect(closed.flatMap(({ errors }) => errors)).toEqual([]);
  });
}

export async function startCluster(
  options: Partial<ScriptedClusterOptions> = {},
): Promise<ScriptedCluster> {
  const cluster = await ScriptedCluster.start({ topics: { [TOPIC]: PARTITIONS }, ...options });
  clusters.push(cluster);
  return cluster;
}

export async function openOn(
  cluster: ScriptedCluster,
  { answerWithinMs, ...config }: Partial<KafkaConfig> & { readonly answerWithinMs?: number } = {},
) {
  const partitions = new Map(cluster.partitions);
  const kafka = kafkaOf(cluster, config);
  const sink = await openKafkaProducer({
    ...{ kafka, partitions },
    transactionalId: 'task',
    ...(answerWithinMs !== undefined && { responseTimeoutMs: answerWithinMs }),
  });
  onTestFinished(() => sink.close());
  return sink;
}

/** A key that belongs to the partition. */
export function keyOf(partition: number): string {
  for (let n = 0; ; n++) if (partitionOf(`k${n}`, PARTITIONS) === partition) return `k${n}`;
}

export function message(partition: number, value: string | null = 'v'): Message {
  return { topic: TOPIC, key: keyOf(partition), value: value === null ? null : Buffer.from(value) };
}

/** One for each partition. */
export function messages(value: string): Message[] {
  return Array.from({ length: PARTITIONS }, (_, partition) => message(partition, value));
}

/** By partition, the values that a consumer has. */
export function committed(cluster: ScriptedCluster): (string | null)[][] {
  return Array.from({ length: PARTITIONS }, (_, partition) =>
    cluster.committed(TOPIC, partition).map(({ value }) => value),
  );
}

/** So many messages in each partition, in this order. */
export function each(...values: string[]): string[][] {
  return Array.from({ length: PARTITIONS }, () => values);
}

/** When so many such requests have come. */
export async function arrived(cluster: ScriptedCluster, api: Api, count: number): Promise<void> {
  await vi.waitFor(() => expect(cluster.of(api).length).toBeGreaterThanOrEqual(count), {
    interval: 5,
    timeout: 10_000,
  });
}

/** The names of the calls, in order, without those that only look. */
export function told(cluster: ScriptedCluster): string[] {
  return cluster.requests
    .filter(({ api }) => !['ApiVersions', 'Metadata', 'FindCoordinator'].includes(api))
    .map(({ api }) => api);
}

export interface Gate {
  readonly isOpen: Promise<void>;
  readonly open: () => void;
}

export function gate(): Gate {
  let open = () => undefined as void;
  const isOpen = new Promise<void>((resolve) => (open = resolve));
  return { isOpen, open: () => open() };
}

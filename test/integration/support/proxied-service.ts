import { inject } from 'vitest';
import type { TestContext } from 'vitest';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startSandbox } from '../../../src/sandbox/index.ts';
import type { Sandbox } from '../../../src/sandbox/index.ts';
import { KafkaProxy } from '../../support/proxy/kafka-proxy.ts';
import { checkOrders, checkStatusChanges, repeatedSequences } from './checker.ts';
import { runCli } from './cli.ts';
import type { Cli } from './cli.ts';
import { publishedTruth } from './published-truth.ts';
import { settings } from './service.ts';
import { readTopic } from './topic-reader.ts';

type Context = Pick<TestContext, 'onTestFinished' | 'onTestFailed'>;

/** A sandbox whose orders change, and a proxy before the broker for the services that read it. */
export interface Proxied {
  readonly prefix: string;
  readonly sandbox: Sandbox;
  readonly proxy: KafkaProxy;
  /** Starts `run`; `past` says that this one goes to the broker directly. */
  readonly run: (options?: RunOptions) => Cli;
  /**
   * Stops the changes, waits until all is published, ends the service as an operator does and holds
   * what an independent reader finds against the promises.
   */
  readonly prove: (service: Cli) => Promise<Proof>;
}

export interface RunOptions {
  readonly stateDir?: string;
  readonly past?: boolean;
  /** How long kafkajs waits for an answer, ms. Default what kafkajs takes: 30 s. */
  readonly requestTimeoutMs?: number;
}

export interface Proof {
  readonly exit: number | NodeJS.Signals;
  readonly violations: readonly string[];
  readonly events: number;
  readonly statusChanges: number;
}

/** Preloaded into the built command: another patience of kafkajs, and nothing else. */
const patience = (requestTimeout: number) => `
import { createRequire } from 'node:module';
const kafkajs = createRequire('${import.meta.url}')('kafkajs');
const { Kafka } = kafkajs;
kafkajs.Kafka = class extends Kafka {
  constructor(options) {
    super({ ...options, requestTimeout: ${requestTimeout} });
  }
};`;
const ORDERS = 600;

/** For tests that run beside each other: what it starts ends with the test of this context. */
export async function proxied(context: Context, prefix: string): Promise<Proxied> {
  const { onTestFinished, onTestFailed } = context;
  const [broker] = inject('brokers');
  const proxy = await KafkaProxy.listen(broker!);
  onTestFinished(() => proxy.close());
  const sandbox = await startSandbox({
    records: { orders: ORDERS },
    quotaPerMinute: 1_000,
    loginQuotaPerMinute: 1_000,
    changesPerSecond: 30,
    latencyMs: [5, 40],
  });
  onTestFinished(() => sandbox.close());

  const topic = (name: string) =>
    readTopic(inject('brokers'), inject('registryUrl'), `${prefix}.${name}`);
  return {
    prefix,
    sandbox,
    proxy,
    run: ({ stateDir = folder(context), past = false, requestTimeoutMs } = {}) => {
      const service = runCli(['run'], {
        ...settings(sandbox, prefix, stateDir),
        ...(!past && { KAFKA_BROKERS: proxy.address }),
        ...(requestTimeoutMs !== undefined && {
          NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(patience(requestTimeoutMs))}`,
        }),
        PAGE_SIZE: '40', // an initial snapshot of twenty commits
        POLL_INTERVAL_MS: '500',
        SWEEP_INTERVAL_MS: '2000', // orders are deleted too
        DELETE_LIMIT_PERCENT: '100', // more of these few than is usual
      });
      onTestFinished(async () => void (await service.end('SIGKILL')));
      onTestFailed(() => console.log(`what the service said:\n${service.stderr().slice(-4_000)}`));
      return service;
    },
    prove: async (service) => {
      sandbox.setRate(0);
      await Promise.race([
        publishedTruth(inject('brokers'), inject('registryUrl'), prefix, sandbox),
        service.ended, // by itself: what is missing then, the checker says
      ]);
      const exit = await service.end('SIGTERM');
      const events = await topic('orders');
      const statuses = checkStatusChanges(await topic('order-status-changes'), events);
      const violations = [
        ...checkOrders(events, sandbox).violations,
        ...statuses.violations,
        ...repeatedSequences(events),
      ];
      return { exit, violations, events: events.length, statusChanges: statuses.count };
    },
  };
}

/** An empty folder until the end of the test. */
export function folder({ onTestFinished }: Context): string {
  const path = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { logCreator } from 'kafkajs';
import { firstValueFrom } from 'rxjs';
import { run } from '../app.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config, ConfigWith } from '../config/config.ts';
import { STARTUP_RETRIES, openKafka } from '../sinks/open-kafka.ts';
import { CellarstreamError } from '../core/errors.ts';
import { listNamed, statusTopics } from '../description/description.ts';
import type { Hooks, Progress } from '../observe/hooks.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { allHooks } from '../observe/all-hooks.ts';
import { openOperations } from '../ops/operations.ts';
import type { Operations, OperationsOptions } from '../ops/operations.ts';
import { startSandbox } from '../sandbox/index.ts';
import { registryUrlOf } from '../devstack/registry-server.ts';
import type { Services } from '../devstack/services.ts';
import { startServices } from '../devstack/start-services.ts';
import type { Operation } from '../streams/diff/change.ts';
import { instanceText, runningInstanceOf } from './running-instance.ts';
import { demoFleet } from './demo-fleet.ts';
import { demoEnvironment } from './demo-environment.ts';
import { changeLines } from './event-lines.ts';
import { logHooks } from './log-hooks.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { DemoFlags } from './sandbox-flags.ts';
import { logOperations } from './service-log.ts';
import { stopSignals } from './stop.ts';
import { ProgressLine, stdoutColors } from './terminal.ts';

/** Default ports of Kafka and the registry in the examples, as in docker-compose.yml. */
const PORTS = { kafka: 9092, registry: 8081 };

/**
 * `cellarstream demo`: runs a sandbox, Kafka, a schema registry and the service until a signal. If KAFKA_BROKERS and SCHEMA_REGISTRY_URL
 * are set, the demo uses that Kafka and registry instead of its own. Changes go to stdout; messages about the demo itself go to stderr.
 */
export async function demoCommand(flags: DemoFlags): Promise<void> {
  const stop$ = stopSignals();
  const line = new ProgressLine();
  const state = mkdtempSync(join(tmpdir(), 'cellarstream-demo-'));

  // Runs also when a second signal ends the process immediately.
  process.once('exit', () => rmSync(state, { recursive: true, force: true }));

  const brokers = process.env.KAFKA_BROKERS?.split(',').filter(Boolean) ?? [];
  const registryUrl = process.env.SCHEMA_REGISTRY_URL;
  line.show(
    brokers.length > 0 ? 'connecting to KAFKA_BROKERS' : 'preparing Kafka and the schema registry',
  );
  const starting = startServices({
    brokers,
    registryUrl,
    ports: PORTS,
    onProgress: (text) => line.show(text),
    onFallback: (reason) => line.end(`${reason}; trying Java`),
  });
  const services = await Promise.race([starting, firstValueFrom(stop$)]);
  if (typeof services === 'string') {
    // Stopped by a signal: processes that are still starting end with this one.
    return line.end('stopped');
  }
  if (flags.accounts > 1 || flags.instances > 1) {
    return demoFleet({ flags, services, state, line, stop$ });
  }
  const sandbox = await startSandbox(sandboxOptions(flags));
  const config = loadConfig({
    env: {
      LOG_LEVEL: 'warn',
      ...demoEnvironment(services),
      ...{ API_BASE_URL: sandbox.url, API_KEY: sandbox.apiKey, STATE_DIR: state },
    },
    cwd: state, // no .env: the demo must work without any settings
    needs: ['api', 'kafka', 'registry'],
  });
  const logger = await createLogger({ level: config.logLevel });
  if (services.origin === 'settings') {
    line.end(
      `using the Kafka of KAFKA_BROKERS (${services.brokers.join(',')}) and the registry of SCHEMA_REGISTRY_URL`,
    );
    const log = kafkaLogCreator(logger);
    await Promise.race([expectNoRunningInstance(config, log, line), firstValueFrom(stop$)]);
  }
  const operations = await openOnFreePort(config, logOperations(logger));
  const { prefix } = config.topics;

  const output = new DemoOutput(config, line, [
    `Kafka ${services.brokers.join(',')}  registry ${services.registryUrl}  API ${sandbox.url}`,
    `status page ${operations.url}`,
    `topics ${prefix}.{${[...config.resources, ...statusTopics(config.description), 'dead-letters'].join(',')}}`,
    ...exportLines(services, prefix, config.description.api),
  ]);
  try {
    const hooks = allHooks(
      { ...logHooks(logger, config.description.lists), ...output.hooks },
      operations.hooks,
    );
    await run({ config, stop$, hooks, kafkaLog: kafkaLogCreator(logger) });
  } finally {
    output.end();
    await Promise.allSettled([operations.close(), sandbox.close(), services.stop()]);
  }
}

/**
 * Prints what the demo's service does: the service's addresses once, the progress of the initial snapshots, then a line for each change.
 */
class DemoOutput {
  readonly #config: Config;
  readonly #line: ProgressLine;
  readonly #startedAt = performance.now();
  readonly #colors = stdoutColors();
  readonly #counts: Record<Operation, number> = { r: 0, c: 0, u: 0, d: 0 };
  #statusCount = 0;
  readonly #snapshots = new Map<string, Progress>();
  /** Lines to print when the first list has been claimed; empty once they are printed. */
  #introduction: readonly string[];

  constructor(config: Config, line: ProgressLine, introduction: readonly string[]) {
    this.#config = config;
    this.#line = line;
    this.#introduction = introduction;
  }

  readonly hooks: Pick<Hooks, 'onReady' | 'onProgress' | 'onPublished'> = {
    onReady: () => {
      for (const text of this.#introduction) this.#line.end(text);
      this.#introduction = [];
    },
    onProgress: (progress) => {
      const { resource, total, done } = progress;
      this.#snapshots.set(resource, progress);
      if (done) this.#line.end(`initial snapshot of ${resource} done: ${total} records`);
      const all = [...this.#snapshots.values()];
      if (all.length === this.#config.resources.length && all.every((each) => each.done)) {
        return this.#line.end('from here on, changes as they happen');
      }
      const sum = (of: 'read' | 'total') => all.reduce((before, each) => before + each[of], 0);
      this.#line.progress('initial snapshot', sum('read'), sum('total'));
    },
    onPublished: (published) => {
      for (const { op } of published.changes) this.#counts[op] += 1;
      this.#statusCount += published.statusChanges.length;
      const list = listNamed(this.#config.description, published.resource);
      const time = new Date().toTimeString().slice(0, 8);
      const lines = changeLines(published, list, this.#colors, time);
      if (lines.length === 0) return;
      this.#line.clear();
      process.stdout.write(`${lines.join('\n')}\n`);
    },
  };

  end(): void {
    const { r, c, u, d } = this.#counts;
    const seconds = ((performance.now() - this.#startedAt) / 1_000).toFixed(0);
    this.#line.end(
      `${r} read, ${c} created, ${u} updated, ${d} deleted, ${this.#statusCount} status changes in ${seconds} s`,
    );
  }
}

/**
 * Throws if a service already publishes under the demo's prefix, because the demo would fence it.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
async function expectNoRunningInstance(
  config: ConfigWith<'kafka'>,
  log: logCreator,
  line: ProgressLine,
): Promise<void> {
  const kafka = openKafka(config, { log, kafkaRetries: STARTUP_RETRIES });
  const { prefix } = config.topics;
  const running = await runningInstanceOf(config, kafka, () =>
    line.show(`checking whether another service publishes under TOPIC_PREFIX=${prefix}`),
  );
  line.clear();
  if (!running) return;
  throw new CellarstreamError(
    'SETTINGS',
    `TOPIC_PREFIX=${prefix} is in use: ${instanceText(running)} publishes under it to KAFKA_BROKERS. Set another TOPIC_PREFIX, stop that instance, or unset KAFKA_BROKERS and SCHEMA_REGISTRY_URL, so that the demo starts a Kafka of its own`,
  );
}

/** Opens the service's HTTP endpoints on the configured or the default port. If the default port is in use, opens them on any free port. */
async function openOnFreePort(
  config: Config,
  onError: OperationsOptions['onError'],
): Promise<Operations> {
  try {
    return await openOperations({ config, onError });
  } catch (error) {
    const isTaken = error instanceof CellarstreamError && error.context.settings === 'HTTP_PORT';
    if (!isTaken || process.env.HTTP_PORT) throw error;
    return openOperations({ config: { ...config, http: { ...config.http, port: 0 } }, onError });
  }
}

/** Returns a line with the environment variables that examples need to reach this demo; empty if the defaults of the examples are right. */
function exportLines(
  { brokers, registryUrl }: Services,
  prefix: string,
  defaultPrefix: string,
): readonly string[] {
  const { kafka, registry } = PORTS;
  const exported = [
    ['KAFKA_BROKERS', brokers.join(','), `127.0.0.1:${kafka}`],
    ['SCHEMA_REGISTRY_URL', registryUrl, registryUrlOf('127.0.0.1', registry)],
    ['TOPIC_PREFIX', prefix, defaultPrefix],
  ]
    .filter(([, value, expected]) => value!.replace('localhost', '127.0.0.1') !== expected)
    .map(([name, value]) => ` ${name}=${value}`);
  return exported.length === 0 ? [] : [`in the terminal of an example: export${exported.join('')}`];
}

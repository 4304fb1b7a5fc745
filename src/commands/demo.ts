import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { logCreator } from 'kafkajs';
import pc from 'picocolors';
import { firstValueFrom } from 'rxjs';
import { run } from '../app.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config, ConfigWith } from '../config/config.ts';
import { STARTUP_RETRIES, openKafka } from '../sinks/open-kafka.ts';
import { CellarstreamError } from '../core/errors.ts';
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
import { instanceText, activeInstanceOf } from './active-instance.ts';
import { changeLines } from './change-lines.ts';
import { demoFleet } from './demo-fleet.ts';
import { directLoopback } from './direct-loopback.ts';
import { logHooks } from './log-hooks.ts';
import { progressLine } from './progress-line.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { DemoFlags } from './sandbox-flags.ts';
import { stopSignals } from './stop.ts';

/** Default ports of Kafka and the registry in the examples, as in docker-compose.yml. */
const PORTS = { kafka: 9092, registry: 8081 };

/**
 * `cellarstream demo`: runs a sandbox, Kafka, a schema registry and the service until a signal. Changes go to stdout, one line each;
 * messages about the demo itself go to stderr. For several accounts or instances see {@link demoFleet}.
 */
export async function demoCommand(flags: DemoFlags): Promise<void> {
  const started = performance.now();
  const stop$ = stopSignals();
  const line = progressLine(process.stderr);
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const state = mkdtempSync(join(tmpdir(), 'cellarstream-demo-'));

  // Runs also when a second signal ends the process immediately.
  process.once('exit', () => rmSync(state, { recursive: true, force: true }));

  const brokers = process.env.KAFKA_BROKERS?.split(',').filter(Boolean) ?? [];
  const registryUrl = process.env.SCHEMA_REGISTRY_URL;
  line.show(
    brokers.length > 0 ? 'looking at KAFKA_BROKERS' : 'starting Kafka and a schema registry',
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
      ...process.env,
      ...directLoopback(process.env),
      API_BASE_URL: sandbox.url,
      API_KEY: sandbox.apiKey,
      API_LOGIN_URL: '',
      KAFKA_BROKERS: services.brokers.join(','),
      SCHEMA_REGISTRY_URL: services.registryUrl,
      STATE_DIR: state,
    },
    cwd: state, // no .env: the demo must work without any settings
    needs: ['api', 'kafka', 'registry'],
  });
  const logger = await createLogger({ level: config.logLevel });
  if (services.origin === 'settings') {
    line.end(
      `the Kafka and the registry are those of KAFKA_BROKERS (${services.brokers.join(',')}) and SCHEMA_REGISTRY_URL`,
    );
    const log = kafkaLogCreator(logger);
    await Promise.race([expectNoRunningInstance(config, log, line), firstValueFrom(stop$)]);
  }
  const operations = await openOnFreePort(config, (error) =>
    logger.error(
      { event: 'operations', err: error },
      'an HTTP endpoint or a hook failed; the service continues',
    ),
  );

  const counts: Record<Operation, number> = { r: 0, c: 0, u: 0, d: 0 };
  let statusCount = 0;
  const snapshots = new Map<string, Progress>();
  let isTold = false;
  const hooks: Hooks = {
    ...logHooks(logger),
    onReady: () => {
      if (isTold) return;
      isTold = true;
      line.end(
        `Kafka ${services.brokers.join(',')}  registry ${services.registryUrl}  API ${sandbox.url}`,
      );
      line.end(`status page ${operations.url}`);
      const { prefix } = config.topics;
      const topics = [...config.resources, 'order-status-changes', 'dead-letters'];
      line.end(`topics ${prefix}.{${topics.join(',')}}`);
      const exported = exportLines(services, prefix);
      if (exported) line.end(`in the terminal of an example: export ${exported}`);
    },
    onProgress: (progress) => {
      const { resource, total, done } = progress;
      snapshots.set(resource, progress);
      if (done) line.end(`initial snapshot of ${resource} done: ${total} records`);
      const all = [...snapshots.values()];
      if (snapshots.size === config.resources.length && all.every((each) => each.done)) {
        return line.end('from here on, changes as they happen');
      }
      const sum = (of: 'read' | 'total') => all.reduce((before, each) => before + each[of], 0);
      line.progress('initial snapshot', sum('read'), sum('total'));
    },
    onPublished: (published) => {
      for (const { op } of published.changes) counts[op] += 1;
      statusCount += published.statusChanges.length;
      const lines = changeLines(published, colors, new Date().toTimeString().slice(0, 8));
      if (lines.length === 0) return;
      line.clear();
      process.stdout.write(lines.join('\n') + '\n');
    },
  };
  try {
    const all = allHooks(hooks, operations.hooks);
    await run({ config, stop$, hooks: all, kafkaLog: kafkaLogCreator(logger) });
  } finally {
    const seconds = ((performance.now() - started) / 1_000).toFixed(0);
    line.end(
      `${counts.r} read, ${counts.c} created, ${counts.u} updated, ${counts.d} deleted, ` +
        `${statusCount} status changes in ${seconds} s`,
    );
    await Promise.allSettled([operations.close(), sandbox.close(), services.stop()]);
  }
}

/**
 * Throws if a service already publishes under the demo's prefix: the demo would fence it, and it may be the process that runs the Kafka of
 * both.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
async function expectNoRunningInstance(
  config: ConfigWith<'kafka'>,
  log: logCreator,
  line: ReturnType<typeof progressLine>,
): Promise<void> {
  const kafka = openKafka(config, { log, kafkaRetries: STARTUP_RETRIES });
  const { prefix } = config.topics;
  const living = await activeInstanceOf(config, kafka, () =>
    line.show(`looking whether another service publishes under TOPIC_PREFIX=${prefix} there`),
  );
  line.clear();
  if (!living) return;
  throw new CellarstreamError(
    'SETTINGS',
    `another service publishes to KAFKA_BROKERS under TOPIC_PREFIX=${prefix}, ${instanceText(living)}: set another TOPIC_PREFIX, or stop it; or unset KAFKA_BROKERS and SCHEMA_REGISTRY_URL, for a Kafka of the demo's own`,
  );
}

/** Opens the service's HTTP endpoints on the port of the settings; if none is set and the default port is in use, on any free port. */
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

/**
 * Returns the environment variables that examples need to reach this demo, as `NAME=value`; only those that differ from the examples'
 * defaults.
 */
function exportLines({ brokers, registryUrl }: Services, prefix: string): string {
  const { kafka, registry } = PORTS;
  const exportedLines = [
    ['KAFKA_BROKERS', brokers.join(','), `127.0.0.1:${kafka}`],
    ['SCHEMA_REGISTRY_URL', registryUrl, registryUrlOf('127.0.0.1', registry)],
    ['TOPIC_PREFIX', prefix, 'wine'],
  ] as const;
  return exportedLines
    .filter(([, value, expected]) => value.replace('localhost', '127.0.0.1') !== expected)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { logCreator } from 'kafkajs';
import pc from 'picocolors';
import { firstValueFrom } from 'rxjs';
import { run } from '../app.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Config, ConfigWith } from '../config/config.ts';
import { FIRST_RETRIES, openKafka } from '../sinks/client/open-kafka.ts';
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
import { instanceText, whoRuns } from './who-runs.ts';
import { changeLines } from './change-lines.ts';
import { demoFleet } from './demo-fleet.ts';
import { directLoopback } from './direct-loopback.ts';
import { logHooks } from './log-hooks.ts';
import { progressLine } from './progress-line.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { DemoFlags } from './sandbox-flags.ts';
import { stopSignals } from './stop.ts';

/** Where examples look for Kafka and the registry when nothing is set: as in docker-compose.yml. */
const PORTS = { kafka: 9092, registry: 8081 };

/**
 * `cellarstream demo`: sandbox, Kafka, schema registry and service in one, until a signal. Changes go
 * to stdout, a line each; all that is about the demo itself goes to stderr. Several accounts or instances are {@link demoFleet}.
 */
export async function demoCommand(flags: DemoFlags): Promise<void> {
  const started = performance.now();
  const stop$ = stopSignals();
  const line = progressLine(process.stderr);
  const colors = pc.createColors(process.stdout.isTTY && pc.isColorSupported);
  const state = mkdtempSync(join(tmpdir(), 'cellarstream-demo-'));

  // Also when a second signal ends the process at once.
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
    // Stopped by a signal meanwhile: what is starting ends with this process.
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
    cwd: state, // no .env: the demo is to work out of the box
    needs: ['api', 'kafka', 'registry'],
  });
  const logger = await createLogger({ level: config.logLevel });
  if (services.origin === 'settings') {
    line.end(
      `the Kafka and the registry are those of KAFKA_BROKERS (${services.brokers.join(',')}) and SCHEMA_REGISTRY_URL`,
    );
    const log = kafkaLogCreator(logger);
    await Promise.race([expectNobody(config, log, line), firstValueFrom(stop$)]);
  }
  const operations = await openSomewhere(config, (error) =>
    logger.error(
      { event: 'operations', err: error },
      'an endpoint failed to answer; the service goes on',
    ),
  );

  const counts: Record<Operation, number> = { r: 0, c: 0, u: 0, d: 0 };
  let statusCount = 0;
  const reading = new Map<string, Progress>();
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
      const exported = exports(services, prefix);
      if (exported) line.end(`in the terminal of an example: export ${exported}`);
    },
    onProgress: (progress) => {
      const { resource, total, done } = progress;
      reading.set(resource, progress);
      if (done) line.end(`initial snapshot of ${resource} done: ${total} records`);
      const all = [...reading.values()];
      if (reading.size === config.resources.length && all.every((each) => each.done)) {
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
 * A demo takes nobody's place: what it would end may have started the Kafka that both are on.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
async function expectNobody(
  config: ConfigWith<'kafka'>,
  log: logCreator,
  line: ReturnType<typeof progressLine>,
): Promise<void> {
  const kafka = openKafka(config, { log, kafkaRetries: FIRST_RETRIES });
  const { prefix } = config.topics;
  const living = await whoRuns(config, kafka, () =>
    line.show(`looking whether another service publishes under TOPIC_PREFIX=${prefix} there`),
  );
  line.clear();
  if (!living) return;
  throw new CellarstreamError(
    'SETTINGS',
    `another service publishes to KAFKA_BROKERS under TOPIC_PREFIX=${prefix}, ${instanceText(living)}: set another TOPIC_PREFIX, or stop it; or unset KAFKA_BROKERS and SCHEMA_REGISTRY_URL, for a Kafka of the demo's own`,
  );
}

/** On the port of the settings; or, where none is set and the usual one is taken, on another. */
async function openSomewhere(
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

/** What examples have to be told: where this demo is, unless it is where they look. */
function exports({ brokers, registryUrl }: Services, prefix: string): string {
  const { kafka, registry } = PORTS;
  const said = [
    ['KAFKA_BROKERS', brokers.join(','), `127.0.0.1:${kafka}`],
    ['SCHEMA_REGISTRY_URL', registryUrl, registryUrlOf('127.0.0.1', registry)],
    ['TOPIC_PREFIX', prefix, 'wine'],
  ] as const;
  return said
    .filter(([, value, expected]) => value.replace('localhost', '127.0.0.1') !== expected)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
}

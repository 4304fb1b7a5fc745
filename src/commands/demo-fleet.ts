import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  first,
  firstValueFrom,
  forkJoin,
  map,
  of,
  raceWith,
  startWith,
  Subject,
  takeUntil,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { loadConfig } from '../config/load-config.ts';
import type { ConfigWith } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import type { Services } from '../devstack/services.ts';
import { readFleetGroupState } from '../fleet/fleet-group.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { startSandbox } from '../sandbox/index.ts';
import { STARTUP_RETRIES, openKafka } from '../sinks/open-kafka.ts';
import { writeAccountFiles } from './account-files.ts';
import { directLoopback } from './direct-loopback.ts';
import { fleetScene } from './fleet-scene.ts';
import { instanceProcess } from './instance-process.ts';
import type { InstanceEnd, InstanceLine, InstanceProcess } from './instance-process.ts';
import type { ProgressLine } from './progress-line.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { DemoFlags } from './sandbox-flags.ts';

export interface DemoFleetOptions {
  readonly flags: DemoFlags;
  /** Kafka and the registry; stopped at the end. */
  readonly services: Services;
  /** Temporary folder of the demo. */
  readonly state: string;
  readonly line: ProgressLine;
  readonly stop$: Observable<NodeJS.Signals>;
}

/** Shortest wait before the demo restarts an instance that has ended, in ms, so that the fleet is seen without it. */
const RESTART_AFTER_MS = 20_000;
/**
 * Longest wait before the demo restarts an instance that has ended, in ms: on a busy machine the other instances may take longer to claim
 * all accounts.
 */
const RESTART_DEADLINE_MS = 90_000;

/**
 * `cellarstream demo` with several accounts or instances: a sandbox with all accounts, and a process for each instance, which can be
 * killed. Prints which instance claims which account to stdout; messages about the demo itself go to stderr.
 *
 * @throws CellarstreamError with the error text of an instance that could not start.
 */
export async function demoFleet(options: DemoFleetOptions): Promise<void> {
  const { flags, services, state, line } = options;
  const sandbox = await startSandbox({ ...sandboxOptions(flags), accounts: flags.accounts });
  const accountsDir = join(state, 'accounts');
  const env = {
    ...process.env,
    ...directLoopback(process.env),
    // These settings come from the accounts' files.
    ...{ API_BASE_URL: '', API_KEY: '', API_KEY_FILE: '', API_LOGIN_URL: '' },
    ACCOUNTS_DIR: accountsDir,
    KAFKA_BROKERS: services.brokers.join(','),
    SCHEMA_REGISTRY_URL: services.registryUrl,
    LOG_LEVEL: 'info', // the demo reads the instances' logs
    HTTP_PORT: '0',
  };
  try {
    await writeAccountFiles(accountsDir, sandbox);
    const config = loadConfig({ env, cwd: state, needs: ['kafka', 'registry'] });
    if (services.origin === 'settings') await expectNoFleet(config);
    line.end(
      `Kafka ${services.brokers.join(',')}  registry ${services.registryUrl}  API ${sandbox.url}`,
    );
    await runInstances(options, env, usageHints(config, accountsDir, sandbox.accounts[0]!.name));
  } finally {
    await Promise.allSettled([sandbox.close(), services.stop()]);
  }
}

/** Runs the demo's instances until a signal; rejects if an instance can't start. In either case all instances have ended then. */
async function runInstances(
  { flags, state, line, stop$ }: DemoFleetOptions,
  env: Readonly<Record<string, string | undefined>>,
  hints: readonly string[],
): Promise<void> {
  const scene = fleetScene(flags.accounts);
  const running = new Map<string, InstanceProcess>();
  const told$ = new Subject<void>();
  const over$ = new Subject<void>();
  const failed$ = new Subject<never>();
  const failed = firstValueFrom(failed$);
  let isStopping = false;
  let isTold = false;

  /** Emits once all accounts are being read, or after {@link RESTART_DEADLINE_MS}. */
  const whole$ = told$.pipe(
    startWith(undefined),
    map(() => scene.isFullyServed()),
    first(Boolean),
    raceWith(timer(RESTART_DEADLINE_MS)),
  );
  const print = (lines: readonly string[]): void => {
    if (lines.length === 0) return;
    const at = new Date().toTimeString().slice(0, 8);
    line.clear();
    process.stdout.write(lines.map((text) => `${at}  ${text}\n`).join(''));
  };
  const logLine = (name: string, entry: InstanceLine): void => {
    if (isStopping) return;
    if (entry.event === 'listening') line.end(`status page of ${name}: ${entry.url}`);
    if (isProblem(entry)) line.end(problemText(name, entry));
    print(scene.linesFor(name, entry));
    told$.next();
    if (isTold || !scene.isFullyServed()) return;
    isTold = true;
    for (const hint of hints) line.end(hint);
    const [, victim] = [...running].at(-1)!;
    const again = `it is started again after ${RESTART_AFTER_MS / 1_000} s or more, and accounts move back`;
    line.end(`kill one: kill -9 ${victim.pid}; ${again}`);
  };
  const start = (name: string): void => {
    const stateDir = join(state, name);
    mkdirSync(stateDir, { recursive: true });
    let isUp = false;
    const instance = instanceProcess({
      env: { ...env, INSTANCE_NAME: name, STATE_DIR: stateDir },
      cwd: state, // no .env: the demo must work without any settings
      onLine: (entry) => {
        isUp ||= entry.event === 'generation';
        logLine(name, entry);
      },
    });
    running.set(name, instance);
    if (instance.pid !== undefined) line.end(`${name} is process ${instance.pid}`);
    void instance.ended.then((end) => {
      running.delete(name);
      if (isStopping) return;
      if (!isUp && end.code !== null) return failed$.error(startError(name, end));
      const had = scene.instanceEnded(name).join(', ') || 'no accounts';
      print([`${name} has ended (${end.cause}), and leaves ${had}`]);
      const hasOthers = running.size > 0;
      const once = hasOthers ? ', once the others have its accounts' : '';
      line.end(`${name} is started again after ${RESTART_AFTER_MS / 1_000} s${once}`);
      forkJoin([timer(RESTART_AFTER_MS), hasOthers ? whole$ : of(true)])
        .pipe(takeUntil(over$))
        .subscribe(() => start(name));
    });
  };

  try {
    for (let n = 1; n <= flags.instances; n += 1) start(`instance-${n}`);
    await Promise.race([firstValueFrom(stop$), failed]);
  } finally {
    isStopping = true;
    over$.next();
    line.show('stopping the instances');
    await Promise.all([...running.values()].map(({ stop }) => stop()));
    line.end('all instances have ended');
  }
}

const PROBLEM_EVENTS: ReadonlySet<string> = new Set(['warn', 'error', 'fatal']);

/** Whether an instance's log line reports a problem. Lines without `event` come from kafkajs, about errors that it resolves itself. */
function isProblem({ level = '', event }: InstanceLine): boolean {
  return event !== undefined && PROBLEM_EVENTS.has(level);
}

function problemText(name: string, { account, msg = '', err }: InstanceLine): string {
  const of = account === undefined ? name : `${name}, ${account}`;
  return `${of}: ${msg}${err?.message === undefined ? '' : ` (${err.message})`}`;
}

function startError(name: string, { code, cause, lastOutput }: InstanceEnd): CellarstreamError {
  const why = lastOutput.replace(/^cellarstream: /, '') || cause;
  const message = `${name} can't start: ${why}`;
  return new CellarstreamError(code === 2 ? 'SETTINGS' : 'SERVICES', message);
}

/** Returns lines with the settings that commands need in another terminal, and examples of commands. */
function usageHints(
  { kafka, registry, topics }: ConfigWith<'kafka' | 'registry'>,
  accountsDir: string,
  account: string,
): readonly string[] {
  const settings = [
    `KAFKA_BROKERS=${kafka.brokers.join(',')}`,
    `SCHEMA_REGISTRY_URL=${registry.url}`,
    `TOPIC_PREFIX=${topics.prefix}`,
    `ACCOUNTS_DIR=${accountsDir}`,
  ];
  return [
    `in another terminal: export ${settings.join(' ')}`,
    `and there: npx cellarstream accounts, or npx cellarstream replay orders --account ${account} --follow --pretty`,
  ];
}

/**
 * Throws if a fleet is already running under the demo's prefix: the demo's instances would join it.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
async function expectNoFleet(config: ConfigWith<'kafka'>): Promise<void> {
  const { sharedPrefix } = config.topics;
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const kafka = openKafka(config, { log, kafkaRetries: STARTUP_RETRIES });
  const { members } = await readFleetGroupState(kafka, sharedPrefix);
  if (members.length === 0) return;
  throw new CellarstreamError(
    'SETTINGS',
    `a fleet runs on KAFKA_BROKERS under TOPIC_PREFIX=${sharedPrefix}: ${members.map(({ name }) => name).join(', ')}. Set another TOPIC_PREFIX, or stop it; or unset KAFKA_BROKERS and SCHEMA_REGISTRY_URL, for a Kafka of the demo's own`,
  );
}

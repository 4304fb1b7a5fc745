import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  first,
  firstValueFrom,
  forkJoin,
  merge,
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
import { writeAccountFiles } from './write-account-files.ts';
import { demoEnvironment } from './demo-environment.ts';
import { FleetScene } from './fleet-scene.ts';
import { InstanceProcess } from './instance-process.ts';
import type { InstanceEnd, InstanceLine } from './instance-process.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { DemoFlags } from './sandbox-flags.ts';
import type { ProgressLine } from './terminal.ts';

interface DemoFleetOptions {
  readonly flags: DemoFlags;
  /** Kafka and the schema registry; stopped when the demo ends. */
  readonly services: Services;
  readonly state: string;
  readonly line: ProgressLine;
  readonly stop$: Observable<NodeJS.Signals>;
}

/**
 * Shortest wait before the demo restarts an instance that has ended, in ms. Meanwhile the user can see the fleet work without that
 * instance.
 */
const RESTART_AFTER_MS = 20_000;
/**
 * Longest wait before the demo restarts an instance that has ended, in ms. It restarts the instance earlier once the other instances serve
 * all accounts.
 */
const RESTART_DEADLINE_MS = 90_000;

/**
 * `cellarstream demo` with several accounts or instances: a sandbox with all accounts, and a process for each instance, which the user may
 * kill. Prints to stdout which instance claims which account; messages about the demo itself go to stderr.
 *
 * @throws CellarstreamError with the error text of an instance that could not start.
 */
export async function demoFleet(options: DemoFleetOptions): Promise<void> {
  const { flags, services, state, line } = options;
  const sandbox = await startSandbox({ ...sandboxOptions(flags), accounts: flags.accounts });
  const accountsDir = join(state, 'accounts');
  const env = {
    ...demoEnvironment(services),
    // These settings come from the accounts' files.
    ...{ API_BASE_URL: '', API_KEY: '', API_KEY_FILE: '' },
    ACCOUNTS_DIR: accountsDir,
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
    const hints = usageHints(config, accountsDir, sandbox.accounts[0]!.name);
    await new FleetDemo({ ...options, env, hints }).run();
  } finally {
    await Promise.allSettled([sandbox.close(), services.stop()]);
  }
}

interface FleetDemoOptions extends DemoFleetOptions {
  /** Environment variables that all instances have in common. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Lines printed once, when all accounts are served for the first time. */
  readonly hints: readonly string[];
}

/**
 * Runs the demo's instances, and starts an instance again when it ends. The method `run` resolves after a signal, and rejects if an
 * instance can't start. In both cases it first stops all instances.
 */
class FleetDemo {
  readonly #options: FleetDemoOptions;
  readonly #scene: FleetScene;
  readonly #running = new Map<string, InstanceProcess>();
  /** Emits after every log line of an instance. */
  readonly #changed$ = new Subject<void>();
  /** Emits when the demo begins to stop. Fails with an error when an instance can't start. */
  readonly #over$ = new Subject<void>();
  #isStopping = false;
  #areHintsPrinted = false;

  constructor(options: FleetDemoOptions) {
    this.#options = options;
    this.#scene = new FleetScene(options.flags.accounts);
  }

  async run(): Promise<void> {
    const { flags, line, stop$ } = this.#options;
    const over = firstValueFrom(merge(stop$, this.#over$));
    try {
      for (let n = 1; n <= flags.instances; n += 1) this.#start(`instance-${n}`);
      await over;
    } finally {
      this.#isStopping = true;
      this.#over$.next();
      line.show('stopping the instances');
      await Promise.all([...this.#running.values()].map((instance) => instance.stop()));
      line.end('all instances have ended');
    }
  }

  #start(name: string): void {
    const { state, line, env: common } = this.#options;
    const stateDir = join(state, name);
    mkdirSync(stateDir, { recursive: true });
    let hasJoined = false;
    const env = { ...common, INSTANCE_NAME: name, STATE_DIR: stateDir };
    // Without a .env in its folder: the demo must work without any settings.
    const instance = new InstanceProcess(env, state, (entry) => {
      hasJoined ||= entry.event === 'generation';
      if (!this.#isStopping) this.#logged(name, entry);
    });
    this.#running.set(name, instance);
    if (instance.pid !== undefined) line.end(`${name} is process ${instance.pid}`);
    void instance.ended.then((end) => {
      this.#running.delete(name);
      if (this.#isStopping) return;
      // It can't start if it exits before it has joined the fleet, unless a signal has killed it.
      if (!hasJoined && end.code !== null) this.#over$.error(startError(name, end));
      else this.#restart(name, end);
    });
  }

  /**
   * Starts an instance again after {@link RESTART_AFTER_MS}. If other instances are running but do not serve all accounts by then, waits
   * until they do, or until {@link RESTART_DEADLINE_MS} have passed.
   */
  #restart(name: string, { cause }: InstanceEnd): void {
    const accounts = this.#scene.instanceEnded(name).join(', ') || 'no accounts';
    this.#print([`${name} has ended (${cause}); it owned ${accounts}`]);
    const hasOthers = this.#running.size > 0;
    const condition = hasOthers ? ', once the other instances have claimed its accounts' : '';
    this.#options.line.end(
      `${name} is started again after ${RESTART_AFTER_MS / 1_000} s${condition}`,
    );
    const areServed$ = this.#changed$.pipe(
      startWith(undefined),
      first(() => this.#scene.isFullyServed),
      raceWith(timer(RESTART_DEADLINE_MS)),
    );
    forkJoin([timer(RESTART_AFTER_MS), hasOthers ? areServed$ : of(true)])
      .pipe(takeUntil(this.#over$))
      .subscribe({ next: () => this.#start(name), error: () => undefined });
  }

  #logged(name: string, entry: InstanceLine): void {
    const { line, hints } = this.#options;
    if (entry.event === 'listening') line.end(`status page of ${name}: ${entry.url}`);
    if (isProblem(entry)) line.end(problemText(name, entry));
    this.#print(this.#scene.linesFor(name, entry));
    this.#changed$.next();
    if (this.#areHintsPrinted || !this.#scene.isFullyServed) return;
    this.#areHintsPrinted = true;
    const newest = [...this.#running.values()].at(-1)!;
    for (const hint of hints) line.end(hint);
    line.end(
      `kill one: kill -9 ${newest.pid}; it is started again after ${RESTART_AFTER_MS / 1_000} s or more, and accounts move back`,
    );
  }

  #print(lines: readonly string[]): void {
    if (lines.length === 0) return;
    const at = new Date().toTimeString().slice(0, 8);
    this.#options.line.clear();
    process.stdout.write(lines.map((text) => `${at}  ${text}\n`).join(''));
  }
}

/**
 * Whether an instance's log line reports a problem. Lines without `event` are ignored: they come from kafkajs and report errors that
 * kafkajs handles itself.
 */
function isProblem({ level = '', event }: InstanceLine): boolean {
  return event !== undefined && ['warn', 'error', 'fatal'].includes(level);
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

/** Returns lines with example commands and the settings that these commands need in another terminal. */
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
    `TOPIC_PREFIX=${sharedPrefix} is in use at KAFKA_BROKERS by a fleet with the instances ${members.map(({ name }) => name).join(', ')}. Set another TOPIC_PREFIX, stop that fleet, or unset KAFKA_BROKERS and SCHEMA_REGISTRY_URL, so that the demo starts a Kafka of its own`,
  );
}

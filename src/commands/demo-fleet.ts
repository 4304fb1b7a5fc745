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
import { readFleetGroup } from '../fleet/fleet-group.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { startSandbox } from '../sandbox/index.ts';
import { FIRST_RETRIES, openKafka } from '../sinks/client/open-kafka.ts';
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
  /** Stopped at the end. */
  readonly services: Services;
  /** A folder of the demo's own. */
  readonly state: string;
  readonly line: ProgressLine;
  readonly stop$: Observable<NodeJS.Signals>;
}

/** So long the others are seen to do without an instance, at least. */
const AGAIN_AFTER_MS = 20_000;
/** On a busy machine they take its accounts later: then it is started again as soon as they have. But not later than this. */
const AGAIN_AT_MOST_MS = 90_000;

/**
 * `cellarstream demo` with several accounts or instances: a sandbox with all accounts, and each instance a process of its own that
 * can be killed. Who takes which account goes to stdout; all that is about the demo itself goes to stderr.
 *
 * @throws CellarstreamError with what an instance said that could not start.
 */
export async function demoFleet(options: DemoFleetOptions): Promise<void> {
  const { flags, services, state, line } = options;
  const sandbox = await startSandbox({ ...sandboxOptions(flags), accounts: flags.accounts });
  const accountsDir = join(state, 'accounts');
  const env = {
    ...process.env,
    ...directLoopback(process.env),
    // They are in the accounts' files.
    ...{ API_BASE_URL: '', API_KEY: '', API_KEY_FILE: '', API_LOGIN_URL: '' },
    ACCOUNTS_DIR: accountsDir,
    KAFKA_BROKERS: services.brokers.join(','),
    SCHEMA_REGISTRY_URL: services.registryUrl,
    LOG_LEVEL: 'info', // it is read here
    HTTP_PORT: '0',
  };
  try {
    await writeAccountFiles(accountsDir, sandbox);
    const config = loadConfig({ env, cwd: state, needs: ['kafka', 'registry'] });
    if (services.origin === 'settings') await expectNoFleet(config);
    line.end(
      `Kafka ${services.brokers.join(',')}  registry ${services.registryUrl}  API ${sandbox.url}`,
    );
    await runInstances(options, env, howToLook(config, accountsDir, sandbox.accounts[0]!.name));
  } finally {
    await Promise.allSettled([sandbox.close(), services.stop()]);
  }
}

/** Until a signal; rejects when an instance can't start. None of them is left then. */
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

  /** All accounts are read, or it has taken too long. */
  const whole$ = told$.pipe(
    startWith(undefined),
    map(() => scene.isWhole()),
    first(Boolean),
    raceWith(timer(AGAIN_AT_MOST_MS)),
  );
  const print = (lines: readonly string[]): void => {
    if (lines.length === 0) return;
    const at = new Date().toTimeString().slice(0, 8);
    line.clear();
    process.stdout.write(lines.map((text) => `${at}  ${text}\n`).join(''));
  };
  const tell = (name: string, told: InstanceLine): void => {
    if (isStopping) return;
    if (told.event === 'listening') line.end(`status page of ${name}: ${told.url}`);
    if (isTrouble(told)) line.end(troubleOf(name, told));
    print(scene.told(name, told));
    told$.next();
    if (isTold || !scene.isWhole()) return;
    isTold = true;
    for (const hint of hints) line.end(hint);
    const [, victim] = [...running].at(-1)!;
    const again = `it is started again after ${AGAIN_AFTER_MS / 1_000} s or more, and accounts move back`;
    line.end(`kill one: kill -9 ${victim.pid}; ${again}`);
  };
  const start = (name: string): void => {
    const stateDir = join(state, name);
    mkdirSync(stateDir, { recursive: true });
    let isUp = false;
    const instance = instanceProcess({
      env: { ...env, INSTANCE_NAME: name, STATE_DIR: stateDir },
      cwd: state, // no .env: the demo is to work out of the box
      onLine: (told) => {
        isUp ||= told.event === 'generation';
        tell(name, told);
      },
    });
    running.set(name, instance);
    if (instance.pid !== undefined) line.end(`${name} is process ${instance.pid}`);
    void instance.ended.then((end) => {
      running.delete(name);
      if (isStopping) return;
      if (!isUp && end.code !== null) return failed$.error(startError(name, end));
      const had = scene.lost(name).join(', ') || 'no accounts';
      print([`${name} has ended (${end.how}), and leaves ${had}`]);
      const hasOthers = running.size > 0;
      const once = hasOthers ? ', once the others have its accounts' : '';
      line.end(`${name} is started again after ${AGAIN_AFTER_MS / 1_000} s${once}`);
      forkJoin([timer(AGAIN_AFTER_MS), hasOthers ? whole$ : of(true)])
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

const TROUBLE: ReadonlySet<string> = new Set(['warn', 'error', 'fatal']);

/** What kafkajs heals by itself has no event. */
function isTrouble({ level = '', event }: InstanceLine): boolean {
  return event !== undefined && TROUBLE.has(level);
}

function troubleOf(name: string, { account, msg = '', err }: InstanceLine): string {
  const of = account === undefined ? name : `${name}, ${account}`;
  return `${of}: ${msg}${err?.message === undefined ? '' : ` (${err.message})`}`;
}

function startError(name: string, { code, how, lastWords }: InstanceEnd): CellarstreamError {
  const why = lastWords.replace(/^cellarstream: /, '') || how;
  const message = `${name} can't start: ${why}`;
  return new CellarstreamError(code === 2 ? 'SETTINGS' : 'SERVICES', message);
}

/** What commands have to be told in another terminal, and some of them. */
function howToLook(
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
 * A demo takes part in nobody's fleet.
 *
 * @throws CellarstreamError `SETTINGS`.
 */
async function expectNoFleet(config: ConfigWith<'kafka'>): Promise<void> {
  const { sharedPrefix } = config.topics;
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const kafka = openKafka(config, { log, kafkaRetries: FIRST_RETRIES });
  const { told } = await readFleetGroup(kafka, sharedPrefix);
  if (told.length === 0) return;
  throw new CellarstreamError(
    'SETTINGS',
    `a fleet runs on KAFKA_BROKERS under TOPIC_PREFIX=${sharedPrefix}: ${told.map(({ name }) => name).join(', ')}. Set another TOPIC_PREFIX, or stop it; or unset KAFKA_BROKERS and SCHEMA_REGISTRY_URL, for a Kafka of the demo's own`,
  );
}

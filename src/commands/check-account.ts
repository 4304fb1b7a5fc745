import type { Kafka } from 'kafkajs';
import {
  defer,
  firstValueFrom,
  ignoreElements,
  merge,
  Subject,
  tap,
  throwError,
  timeout,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { openApi } from '../account/api.ts';
import { keyFieldsOf } from '../pipeline/choose-key.ts';
import { steadyScheduler } from '../core/clock.ts';
import type { ConfigWith } from '../config/config.ts';
import { openKafka, openLinks, kafkaTransactionalLog } from '../sinks/client/open-kafka.ts';
import { topicsOf } from '../sinks/topics/destination.ts';
import { CellarstreamError, describeError, isRetryableAtApi } from '../core/errors.ts';
import { ALL, LOGIN } from '../account/ledger/ledger-record.ts';
import type { Retrying } from '../observe/hooks.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { namedFields } from '../account/personal-fields-of.ts';
import { openGuest } from '../account/permits/open-guest.ts';
import type { Guest } from '../account/permits/open-guest.ts';
import { quotas } from '../account/quotas.ts';
import type { Quotas } from '../account/quotas.ts';
import { keySubject, topicNames, valueSubject } from '../schemas/events/topics.ts';
import { settingWarnings } from '../config/setting-warnings.ts';
import { parseCursor } from '../pipeline/checkpoint/cursor.ts';
import { registryStorageFindings, inspectTopics } from '../sinks/topics/kafka-topics.ts';
import type { PagePlace } from '../streams/http/page-plan.ts';
import type { LivingInstance } from '../pipeline/checkpoint/living-instance.ts';
import { expectPartitions } from '../pipeline/checkpoint/restore.ts';
import { newestCursors } from '../pipeline/checkpoint/ownership.ts';
import { during } from '../streams/quota/token-bucket.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import type { TopicFinding } from '../schemas/events/topic-findings.ts';
import { RULES } from '../resources/resources.ts';
import { checkRights } from './check-kafka.ts';
import type { ProbeDates } from '../streams/paging/date-negotiation.ts';
import { checkDates } from './check-dates.ts';
import { checkPaging } from './check-paging.ts';
import { checkTotal } from './check-total.ts';
import { attempt } from './findings.ts';
import type { Finding } from './findings.ts';
import { oneAccount } from './one-account.ts';
import type { SettingsSource } from './one-account.ts';
import { instanceText, whoRuns } from './who-runs.ts';

const PATIENCE_MS = 10_000;
/** How long requests may wait for others who have used up the quota, ms. */
const QUOTA_PATIENCE_MS = 20_000;
/** How long Kafka is looked for before the first requests go on without it, ms: the API can be tried all the same. */
const KAFKA_PATIENCE_MS = 2_000;
/** Failed logins after which a check gives up: more would use up the login quota of the next check. */
const MAX_FAILED_LOGINS = 5;
/** Enough to see what the keys could be made of. */
const PAGE_SIZE = 100;

/**
 * Tries what a service with these settings needs: the settings first, and all else if they are fine.
 *
 * @param account Of a fleet; undefined where there is but one.
 */
export async function checkAccount(
  source: SettingsSource,
  account?: string,
): Promise<readonly Finding[]> {
  let config: ConfigWith<'api' | 'kafka' | 'registry'> | undefined;
  const settings = await attempt('settings', () => {
    config = oneAccount(source, account, ['api', 'kafka', 'registry']);
    const doubts = settingWarnings(config, source).map(
      ({ name, advice }) => `; but ${name} ${advice}`,
    );
    return Promise.resolve(`all there${doubts.join('')}`);
  });
  if (!config || !settings.fine) return [settings];
  const [api, destination] = await Promise.all([checkApi(config), checkDestination(config)]);
  return [settings, ...api, ...destination];
}

/** A login, and a page of each list, as part of the account's quota. */
export async function checkApi(config: ConfigWith<'api' | 'kafka'>): Promise<Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const scheduler = steadyScheduler;
  let uncounted: unknown;
  const guest = openGuest({
    kafka: openKafka(config, { log, kafkaRetries: 2 }),
    config,
    batches: batchesOf(config),
    patienceMs: QUOTA_PATIENCE_MS,
    kafkaPatienceMs: KAFKA_PATIENCE_MS,
    scheduler,
    onUncounted: (error) => (uncounted = error),
  });
  const quota = quotas({ config, scheduler, ledger: guest });
  try {
    const counted = await attempt('quota', async () => {
      const begun = firstValueFrom(guest.got$);
      guest.begin();
      await begun;
      return isRefused(uncounted)
        ? `${describeError(uncounted)}. A running service does not count the requests of this check`
        : '';
    });
    if (!counted.fine) return [counted];
    const asked = await askApi(config, guest, quota);
    return counted.detail === '' ? asked : [...asked, { ...counted, isUnwise: true }];
  } finally {
    await guest.close();
  }
}

/** Whether Kafka has answered, and only its topics are not as they have to be: all else can be asked. */
export function isAboutTopics(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  return error.code === 'TOPIC_SETTINGS' || error.context.concerns === 'topic';
}

function isRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'KAFKA_REFUSED';
}

/**
 * A login, and the most requests of each list: its first page, one that begins elsewhere, its end, what is behind that or, where it takes dates,
 * three for the dates and two for a round total. Further ones wait for permits of their own.
 */
function batchesOf({ quota, resources }: ConfigWith<'api'>): Record<string, number> {
  const counts = resources.map((resource) => (RULES[resource].windowed ? 8 : 4));
  if (quota.scope === 'key') return { [LOGIN]: 1, [ALL]: counts.reduce((sum, n) => sum + n, 0) };
  return {
    [LOGIN]: 1,
    ...Object.fromEntries(resources.map((resource, nth) => [resource, counts[nth]!])),
  };
}

async function askApi(config: ConfigWith<'api'>, guest: Guest, quota: Quotas): Promise<Finding[]> {
  const scheduler = steadyScheduler;
  const last = new Map<string, unknown>(); // failures are tried again: the last one is the reason
  const lasting$ = new Subject<never>();
  let failedLogins = 0;
  const onRetry = ({ what, error }: Pick<Retrying, 'what' | 'error'>) => {
    last.set(what, error);
    if (what === 'login') failedLogins += 1;
    if (isLasting(error) || failedLogins >= MAX_FAILED_LOGINS) lasting$.error(error);
  };
  let isLoginFree = false;
  const granted = () => (isLoginFree = true);
  const loginLimit: Limit = Object.assign(
    <T>(source: Observable<T>) => quota.login(source).pipe(tap(granted)),
    {
      during: <T>(work: Observable<T>) =>
        during(
          quota.login,
          defer(() => {
            granted();
            return work;
          }),
        ),
    },
  );
  const silent = () =>
    new CellarstreamError(
      'API_UNREACHABLE',
      `the API did not answer within ${PATIENCE_MS / 1_000} s`,
    );
  const noLoginFree = () =>
    new CellarstreamError(
      'QUOTA_EXCEEDED',
      `no login is left: all ${config.quota.loginsPerMinute} of a minute (LOGIN_QUOTA_PER_MINUTE) are used or reserved. Run check again in a minute`,
    );
  const first = <T>(what: string, source: Observable<T>): Promise<T> => {
    const impatient = timeout<T, Observable<never>>({
      first: PATIENCE_MS,
      with: () =>
        throwError(
          () => last.get(what) ?? last.get('login') ?? (isLoginFree ? silent() : noLoginFree()),
        ),
    });
    const noPermits$ = guest.got$.pipe(ignoreElements());
    return firstValueFrom(merge(source, lasting$, noPermits$).pipe(impatient));
  };
  const mayBeSent = guest.isRunning;
  const api = openApi({
    config: config.api,
    loginLimit,
    mayBeSent,
    scheduler,
    hooks: { onRetry },
  });
  try {
    const login = await attempt('login', async () => {
      const { lifeMs } = await first('login', api.tokens.token$);
      return `a token good for ${lifeText(lifeMs)}`;
    });
    if (!login.fine) return [login];
    const resources = config.resources.map(async (resource) => {
      let isUnwise = false as boolean;
      const finding = await attempt(resource, async () => {
        const { poll } = quota.lanes(resource, false);
        const { plan, pages } = api.list(RULES[resource]);
        const list = pages();
        const ask = (query: ProbeDates & Partial<PagePlace>) =>
          first(resource, list({ offset: 0, pageSize: PAGE_SIZE, ...query }, poll));
        const answer = await ask({});
        const data = answer.data.map(({ json }) => json);
        const keyFields = keyFieldsOf(RULES[resource], config, data);
        const key = keyFields ? `key ${keyFields.join('+')}` : 'no record yet to find the key by';
        const hides = namedFields(config.pii, resource, data).map(
          ({ name, isSeen }) => (isSeen ? name : `${name} (not seen)`), // a wrong name hides nothing
        );
        const hidden = hides.length > 0 ? `; hides ${hides.join(', ')}` : '';
        const { total_records: total = 'an unknown number of' } = answer.pagination;
        const paging = await checkPaging(answer, ask, {
          pageSize: config.poll.pageSize,
          keyFields: keyFields ?? [],
          plan,
        });
        const dates = RULES[resource].windowed
          ? await checkDates(answer, ask, () => scheduler.now())
          : undefined;
        let notes: readonly string[] = [];
        const cut = await checkTotal(answer, ask, {
          pageSize: config.poll.pageSize,
          keyFields: keyFields ?? [],
          takesDates: dates?.isUnusual === false,
          now: scheduler.now(),
        }).catch((error: unknown) => {
          // The list can be read: beside a service that uses its whole quota the last questions may wait too long.
          if (!isRetryableAtApi(error)) throw error;
          notes = ['whether it is shown to its end was not found out'];
          return undefined;
        });
        const warnings = [...paging, ...(cut === undefined ? [] : [cut])];
        isUnwise = dates?.isUnusual === true || warnings.length > 0;
        const found = [...warnings, ...notes, ...(dates ? [dates.text] : [])].map(
          (text) => `; ${text}`,
        );
        return `${total} records, ${key}${hidden}${found.join('')}`;
      });
      return { ...finding, ...(isUnwise && { isUnwise }) };
    });
    return [login, ...(await Promise.all(resources))];
  } finally {
    await api.close();
  }
}

async function checkDestination(config: ConfigWith<'kafka' | 'registry'>): Promise<Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const { kafka, registry, connections } = openLinks(config, { log, kafkaRetries: 2 });
  try {
    let doubts: readonly TopicFinding[] = [];
    let living: LivingInstance | undefined;
    const topics = topicsOf(config, { kafka, connections });
    let isAnswering = true;
    const found = await Promise.all([
      attempt('kafka', async () => {
        const inspected = await inspectTopics(topics).catch((error: unknown) => {
          isAnswering = isAboutTopics(error);
          throw error;
        });
        const { brokers, absent } = inspected;
        ({ doubts } = inspected);
        await expectPartitionsOf(config, kafka, absent);
        // That an instance runs an account of a fleet is how it is to be.
        if (config.accountsDir === undefined) living = await whoRuns(config, kafka);
        const there = absent.length > 0 ? `run will make ${absent.join(', ')}` : 'all topics there';
        return `${brokers} broker${brokers === 1 ? '' : 's'}; ${there}`;
      }),
      attempt('registry', async () => {
        const { records, orderStatusChanges, deadLetters } = topicNames(
          config.topics.prefix,
          config.topics.sharedPrefix,
        );
        const hasOrders = config.resources.includes('orders');
        const topics = [
          ...config.resources.map(records),
          ...(hasOrders ? [orderStatusChanges] : []),
          deadLetters,
        ];
        const keyed =
          config.keyFormat === 'avro' ? topics.filter((each) => each !== deadLetters) : [];
        const inspected = (names: readonly string[]) =>
          Promise.all(names.map((name) => registry.inspect(name)));
        const [subjects, ofKeys] = await Promise.all([
          inspected(topics.map(valueSubject)),
          inspected(keyed.map(keySubject)),
        ]);
        const refusal = [...subjects, ...ofKeys].flatMap(({ refusals }) => refusals)[0];
        if (refusal !== undefined) throw new CellarstreamError('REGISTRY_REFUSED', refusal);
        const known = config.resources.flatMap((resource, nth) => {
          const { version } = subjects[nth]!;
          return version === undefined ? [] : [`${resource} ${version}`];
        });
        return known.length > 0
          ? `versions ${known.join(', ')}`
          : 'no schema yet, run will register them';
      }),
    ]);
    const ofRegistryStorage = isAnswering
      ? await registryStorageFindings(topics).catch(() => []) // why Kafka does not answer is said above
      : [];
    const unwise = [...doubts, ...ofRegistryStorage].map((doubt) => ({
      what: 'topic',
      fine: true,
      isUnwise: true,
      detail: findingText(doubt),
    }));
    const taken = living
      ? [{ what: 'account', fine: true, isUnwise: true, detail: takenText(config.account, living) }]
      : [];
    const [ofKafka, ofRegistry] = found;
    const rights = isAnswering ? await checkRights({ config, topics }) : [];
    return [ofKafka, ...rights, ofRegistry, ...taken, ...unwise];
  } finally {
    connections.close();
    await registry.close();
  }
}

/** Whether the topics of events have the partitions that their events were written with. */
async function expectPartitionsOf(
  config: ConfigWith<'kafka'>,
  kafka: Kafka,
  absent: readonly string[],
): Promise<void> {
  const { records, cursors } = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  if (absent.includes(cursors)) return;
  const log = kafkaTransactionalLog({ kafka }, { partitions: new Map() });
  const written = config.resources.filter((resource) => !absent.includes(records(resource)));
  const { newest } = await newestCursors(log, cursors);
  for (const resource of written) {
    const task = `${config.account}/${resource}`;
    const text = newest.get(task)?.value.toString();
    if (text === undefined) continue;
    const bounds = await log.bounds(records(resource));
    expectPartitions(parseCursor(text, task), records(resource), bounds);
  }
}

function takenText(account: string, living: LivingInstance): string {
  return `${instanceText(living)} runs ${account}: run would take over from it, and it would end. Stop it first, or set another TOPIC_PREFIX`;
}

/** A token's life in minutes; in seconds where it is so short that logins have to wait for one another. */
function lifeText(lifeMs: number): string {
  const minutes = Math.round(lifeMs / 60_000);
  return minutes > 0 ? `${minutes} min` : `${Math.round(lifeMs / 1_000)} s only`;
}

/** What nobody mends within seconds, so that it is no use to wait: a handshake that failed. */
function isLasting(error: unknown): boolean {
  return error instanceof CellarstreamError && error.context.tls !== undefined;
}

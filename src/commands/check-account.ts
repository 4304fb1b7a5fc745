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
import { openKafka, openKafkaClients, kafkaTransactionalLog } from '../sinks/open-kafka.ts';
import { topicsOf } from '../sinks/topics/destination.ts';
import { CellarstreamError, describeError, isRetryableAtApi } from '../core/errors.ts';
import { SHARED_QUOTA, LOGIN_QUOTA } from '../account/ledger/ledger-record.ts';
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
import type { ActiveInstance } from '../pipeline/checkpoint/active-instance.ts';
import { expectPartitions } from '../pipeline/checkpoint/restore.ts';
import { newestCursors } from '../pipeline/checkpoint/task-claim.ts';
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
import { tryCheck } from './findings.ts';
import type { Finding } from './findings.ts';
import { oneAccount } from './one-account.ts';
import type { SettingsSource } from './one-account.ts';
import { instanceText, activeInstanceOf } from './active-instance.ts';

/** How long each request of the check may take, retries included, in ms. */
const CHECK_TIMEOUT_MS = 10_000;
/** How long a request may wait while other processes use up the quota, in ms. */
const QUOTA_PATIENCE_MS = 20_000;
/** How long to try to reach Kafka before the first requests are sent without it, in ms: the API can be checked without Kafka. */
const KAFKA_TIMEOUT_MS = 2_000;
/** Failed logins after which a check gives up: more would use up the login quota of the next check. */
const MAX_FAILED_LOGINS = 5;
/** Page size of the check's requests for lists: enough records to determine the key fields. */
const PAGE_SIZE = 100;

/**
 * Checks what a service with these settings requires: first the settings, then, if they are valid, everything else.
 *
 * @param account Name of an account of a fleet; undefined if there is only one account.
 */
export async function checkAccount(
  source: SettingsSource,
  account?: string,
): Promise<readonly Finding[]> {
  let config: ConfigWith<'api' | 'kafka' | 'registry'> | undefined;
  const settings = await tryCheck('settings', () => {
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

/** Checks a login and a page of each list; the requests count against the account's quota. */
export async function checkApi(config: ConfigWith<'api' | 'kafka'>): Promise<Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const scheduler = steadyScheduler;
  let uncounted: unknown;
  const guest = openGuest({
    kafka: openKafka(config, { log, kafkaRetries: 2 }),
    config,
    batchSizes: permitBatchSizes(config),
    patienceMs: QUOTA_PATIENCE_MS,
    kafkaPatienceMs: KAFKA_TIMEOUT_MS,
    scheduler,
    onUndeclared: (error) => (uncounted = error),
  });
  const quota = quotas({ config, scheduler, ledger: guest.permits });
  try {
    const counted = await tryCheck('quota', async () => {
      const firstBatch = firstValueFrom(guest.permits.batches$);
      guest.permits.start();
      await firstBatch;
      return isRequestRefused(uncounted)
        ? `${describeError(uncounted)}. A running service does not count the requests of this check`
        : '';
    });
    if (!counted.fine) return [counted];
    const asked = await checkRequests(config, guest, quota);
    return counted.detail === '' ? asked : [...asked, { ...counted, isUnwise: true }];
  } finally {
    await guest.close();
  }
}

/** Whether the error concerns only topics: Kafka has responded, so the other checks can go on. */
export function isTopicProblem(error: unknown): boolean {
  if (!(error instanceof CellarstreamError)) return false;
  return error.code === 'TOPIC_SETTINGS' || error.context.concerns === 'topic';
}

function isRequestRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'KAFKA_REFUSED';
}

/**
 * Number of requests to reserve first, by quota: one for the login, and for each list the most that its check may take. That is four
 * requests for a list without dates: the first page, one at another offset, the end of the list, and the record behind it. For a list with
 * dates it is eight: the first three of those, three that measure the dates, and two that check a round total. Later requests wait for
 * permits of their own.
 */
function permitBatchSizes({ quota, resources }: ConfigWith<'api'>): Record<string, number> {
  const counts = resources.map((resource) => (RULES[resource].windowed ? 8 : 4));
  if (quota.scope === 'key')
    return { [LOGIN_QUOTA]: 1, [SHARED_QUOTA]: counts.reduce((sum, n) => sum + n, 0) };
  return {
    [LOGIN_QUOTA]: 1,
    ...Object.fromEntries(resources.map((resource, nth) => [resource, counts[nth]!])),
  };
}

async function checkRequests(
  config: ConfigWith<'api'>,
  guest: Guest,
  quota: Quotas,
): Promise<Finding[]> {
  const scheduler = steadyScheduler;
  // newest error of each kind of request: failures are retried, so the newest is reported as the reason
  const last = new Map<string, unknown>();
  const lasting$ = new Subject<never>();
  let failedLogins = 0;
  const onRetry = ({ what, error }: Pick<Retrying, 'what' | 'error'>) => {
    last.set(what, error);
    if (what === 'login') failedLogins += 1;
    if (isPermanent(error) || failedLogins >= MAX_FAILED_LOGINS) lasting$.error(error);
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
      `the API did not answer within ${CHECK_TIMEOUT_MS / 1_000} s`,
    );
  const noLoginFree = () =>
    new CellarstreamError(
      'QUOTA_EXCEEDED',
      `no login is left: all ${config.quota.loginsPerMinute} of a minute (LOGIN_QUOTA_PER_MINUTE) are used or reserved. Run check again in a minute`,
    );
  const first = <T>(what: string, source: Observable<T>): Promise<T> => {
    const impatient = timeout<T, Observable<never>>({
      first: CHECK_TIMEOUT_MS,
      with: () =>
        throwError(
          () => last.get(what) ?? last.get('login') ?? (isLoginFree ? silent() : noLoginFree()),
        ),
    });
    const noPermits$ = guest.permits.batches$.pipe(ignoreElements());
    return firstValueFrom(merge(source, lasting$, noPermits$).pipe(impatient));
  };
  const maySend = () => guest.permits.isBatchValid();
  const api = openApi({
    config: config.api,
    loginLimit,
    maySend,
    scheduler,
    hooks: { onRetry },
  });
  try {
    const login = await tryCheck('login', async () => {
      const { lifeMs } = await first('login', api.tokens.token$);
      return `a token good for ${lifeText(lifeMs)}`;
    });
    if (!login.fine) return [login];
    const resources = config.resources.map(async (resource) => {
      let isUnwise = false as boolean;
      const finding = await tryCheck(resource, async () => {
        const { poll } = quota.lanes(resource, false);
        const { plan, pages } = api.list(RULES[resource]);
        const list = pages();
        const ask = (query: ProbeDates & Partial<PagePlace>) =>
          first(resource, list({ offset: 0, pageSize: PAGE_SIZE, ...query }, poll));
        const answer = await ask({});
        const data = answer.data.map(({ json }) => json);
        const keyFields = keyFieldsOf(RULES[resource], config, data);
        const key = keyFields
          ? `key ${keyFields.join('+')}`
          : 'no record yet to determine the key from';
        const hides = namedFields(config.pii, resource, data).map(
          ({ name, isSeen }) => (isSeen ? name : `${name} (not seen)`), // a misspelled field hides nothing
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
          // The list is readable, but with a running service that uses its whole quota the last requests may time out.
          if (!isRetryableAtApi(error)) throw error;
          notes = ['could not check whether the API serves the whole list'];
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
  const { kafka, registry, connections } = openKafkaClients(config, { log, kafkaRetries: 2 });
  try {
    let warnings: readonly TopicFinding[] = [];
    let living: ActiveInstance | undefined;
    const topics = topicsOf(config, { kafka, connections });
    let isAnswering = true;
    const found = await Promise.all([
      tryCheck('kafka', async () => {
        const inspected = await inspectTopics(topics).catch((error: unknown) => {
          isAnswering = isTopicProblem(error);
          throw error;
        });
        const { brokers, absent } = inspected;
        ({ warnings } = inspected);
        await expectPartitionsOf(config, kafka, absent);
        // An account of a fleet is supposed to be served by an instance.
        if (config.accountsDir === undefined) living = await activeInstanceOf(config, kafka);
        const there = absent.length > 0 ? `run will make ${absent.join(', ')}` : 'all topics there';
        return `${brokers} broker${brokers === 1 ? '' : 's'}; ${there}`;
      }),
      tryCheck('registry', async () => {
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
      ? await registryStorageFindings(topics).catch(() => []) // an unreachable Kafka is already reported above
      : [];
    const unwise = [...warnings, ...ofRegistryStorage].map((doubt) => ({
      what: 'topic',
      fine: true,
      isUnwise: true,
      detail: findingText(doubt),
    }));
    const conflict = living
      ? [
          {
            what: 'account',
            fine: true,
            isUnwise: true,
            detail: runningInstanceText(config.account, living),
          },
        ]
      : [];
    const [ofKafka, ofRegistry] = found;
    const rights = isAnswering ? await checkRights({ config, topics }) : [];
    return [ofKafka, ...rights, ofRegistry, ...conflict, ...unwise];
  } finally {
    connections.close();
    await registry.close();
  }
}

/** Throws if the topic of a list's events has another number of partitions than when its events were written. */
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

function runningInstanceText(account: string, living: ActiveInstance): string {
  return `${instanceText(living)} runs ${account}: run would fence it, and it would stop. Stop it first, or set another TOPIC_PREFIX`;
}

/** Formats a login token's lifetime in minutes; in seconds if it is so short that logins have to wait for one another. */
function lifeText(lifeMs: number): string {
  const minutes = Math.round(lifeMs / 60_000);
  return minutes > 0 ? `${minutes} min` : `${Math.round(lifeMs / 1_000)} s only`;
}

/** Whether the error can't disappear within seconds, so that waiting is pointless: a failed TLS handshake. */
function isPermanent(error: unknown): boolean {
  return error instanceof CellarstreamError && error.context.tls !== undefined;
}

import type { Kafka } from 'kafkajs';
import { firstValueFrom, ignoreElements, merge, Subject, throwError, timeout } from 'rxjs';
import type { Observable } from 'rxjs';
import { openApi } from '../account/api.ts';
import { keyFieldsOf } from '../pipeline/choose-key.ts';
import { steadyScheduler } from '../core/clock.ts';
import type { ConfigWith } from '../config/config.ts';
import { openKafka, openLinks } from '../sinks/client/open-kafka.ts';
import { topicsOf } from '../sinks/topics/destination.ts';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { ALL, LOGIN } from '../account/ledger/ledger-record.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { namedFields } from '../account/personal-fields-of.ts';
import { openGuest } from '../account/permits/open-guest.ts';
import type { Guest } from '../account/permits/open-guest.ts';
import { quotas } from '../account/quotas.ts';
import type { Quotas } from '../account/quotas.ts';
import { topicNames, valueSubject } from '../schemas/events/topics.ts';
import { settingWarnings } from '../config/setting-warnings.ts';
import { parseCursor } from '../pipeline/checkpoint/cursor.ts';
import { kafkaTransactionalLog } from '../sinks/kafka-transactional-log.ts';
import { inspectTopics } from '../sinks/topics/kafka-topics.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { Answer } from '../streams/decode/answer.ts';
import type { PagePlace } from '../streams/http/page-plan.ts';
import type { LivingInstance } from '../pipeline/checkpoint/living-instance.ts';
import { expectPartitions } from '../pipeline/checkpoint/restore.ts';
import { newestCursors } from '../pipeline/checkpoint/ownership.ts';
import { findingText } from '../schemas/events/topic-findings.ts';
import type { TopicFinding } from '../schemas/events/topic-findings.ts';
import { RULES } from '../resources/resources.ts';
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
/** Enough to see what the keys could be made of. */
const PAGE_SIZE = 100;
/** No multiple of any page size but 1: shows whether pages begin where they are asked for. */
const ODD_OFFSET = 3;

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

function isRefused(error: unknown): boolean {
  return error instanceof CellarstreamError && error.code === 'KAFKA_REFUSED';
}

/** A login, and the requests of each list. */
function batchesOf({ quota, resources }: ConfigWith<'api'>): Record<string, number> {
  if (quota.scope === 'key') return { [LOGIN]: 1, [ALL]: REQUESTS * resources.length };
  return { [LOGIN]: 1, ...Object.fromEntries(resources.map((resource) => [resource, REQUESTS])) };
}

/** Requests of each list: its first page, and one that begins elsewhere. */
const REQUESTS = 2;

async function askApi(config: ConfigWith<'api'>, guest: Guest, quota: Quotas): Promise<Finding[]> {
  const scheduler = steadyScheduler;
  const last = new Map<string, unknown>(); // failures are tried again: the last one is the reason
  const lasting$ = new Subject<never>();
  const onRetry = ({ what, error }: { readonly what: string; readonly error: unknown }) => {
    last.set(what, error);
    if (isLasting(error)) lasting$.error(error);
  };
  const silent = () =>
    new CellarstreamError(
      'API_UNREACHABLE',
      `the API did not answer within ${PATIENCE_MS / 1_000} s`,
    );
  const first = <T>(what: string, source: Observable<T>): Promise<T> => {
    const impatient = timeout<T, Observable<never>>({
      first: PATIENCE_MS,
      with: () => throwError(() => last.get(what) ?? last.get('login') ?? silent()),
    });
    const noPermits$ = guest.got$.pipe(ignoreElements());
    return firstValueFrom(merge(source, lasting$, noPermits$).pipe(impatient));
  };
  const doubts: Finding[] = [];
  const mayBeSent = guest.isRunning;
  const api = openApi({
    config: config.api,
    loginLimit: quota.login,
    mayBeSent,
    scheduler,
    hooks: { onRetry },
  });
  try {
    const login = await attempt('login', async () => {
      const { lifeMs } = await first('login', api.tokens.token$);
      return `a token good for ${Math.round(lifeMs / 60_000)} min`;
    });
    if (!login.fine) return [login];
    const resources = config.resources.map((resource) =>
      attempt(resource, async () => {
        const { poll } = quota.lanes(resource, false);
        const list = api.list(RULES[resource]);
        const ask = list.pages();
        const answer = await first(resource, ask({ offset: 0, pageSize: PAGE_SIZE }, poll));
        const data = answer.data.map(({ json }) => json);
        const keyFields = keyFieldsOf(RULES[resource], config, data);
        const key = keyFields ? `key ${keyFields.join('+')}` : 'no record yet to find the key by';
        const hides = namedFields(config.pii, resource, data).map(
          ({ name, isSeen }) => (isSeen ? name : `${name} (not seen)`), // a wrong name hides nothing
        );
        const hidden = hides.length > 0 ? `; hides ${hides.join(', ')}` : '';
        const total = answer.pagination.total_records;
        if (total > ODD_OFFSET) {
          const place = { offset: ODD_OFFSET, pageSize: config.poll.pageSize };
          const odd = await first(resource, ask(place, poll));
          doubts.push(
            ...pagingDoubts(resource, { place, first: answer, odd, keyFields: keyFields ?? [] }),
          );
        }
        return `${total} records, ${key}${hidden}`;
      }),
    );
    return [login, ...(await Promise.all(resources)), ...doubts];
  } finally {
    await api.close();
  }
}

/** Findings about a list whose pages are not what was asked for: warnings, as the service adapts to each. */
function pagingDoubts(
  resource: string,
  {
    place,
    first,
    odd,
    keyFields,
  }: {
    readonly place: PagePlace;
    readonly first: Answer;
    readonly odd: Answer;
    readonly keyFields: readonly string[];
  },
): Finding[] {
  const left = first.pagination.total_records - place.offset;
  const keyOf = keyOfFields(keyFields);
  const [begin, oddBegin] = [first, odd].map(({ data }) => data[0] && keyOf(data[0].json));
  // A list may move between the two requests, but hardly so that its first record comes after three others.
  const isMoved = odd.offset !== undefined || (begin !== undefined && begin === oddBegin);
  const doubt = (detail: string): Finding => ({
    what: resource,
    fine: true,
    isUnwise: true,
    detail,
  });
  const { length } = odd.data;
  return [
    ...(isMoved
      ? [
          doubt(
            `the API moves or refuses an offset that is no multiple of pageSize: run reads the list in whole pages, with up to a third more requests`,
          ),
        ]
      : []),
    ...(length < Math.min(place.pageSize, left) && odd.pagination.has_next_page
      ? [
          doubt(
            `the API gives at most ${length} records a page (PAGE_SIZE asks for ${place.pageSize}): run takes what comes, and needs more requests`,
          ),
        ]
      : []),
  ];
}

async function checkDestination(config: ConfigWith<'kafka' | 'registry'>): Promise<Finding[]> {
  const log = kafkaLogCreator(await createLogger({ level: 'silent' }));
  const { kafka, registry } = openLinks(config, { log, kafkaRetries: 2 });
  try {
    let doubts: readonly TopicFinding[] = [];
    let living: LivingInstance | undefined;
    const found = await Promise.all([
      attempt('kafka', async () => {
        const { brokers, absent, ...topics } = await inspectTopics(topicsOf(config, { kafka }));
        ({ doubts } = topics);
        await expectPartitionsOf(config, kafka, absent);
        // That an instance runs an account of a fleet is how it is to be.
        if (config.accountsDir === undefined) living = await whoRuns(config, kafka);
        const there = absent.length > 0 ? `run will make ${absent.join(', ')}` : 'all topics there';
        return `${brokers} broker${brokers === 1 ? '' : 's'}; ${there}`;
      }),
      attempt('registry', async () => {
        const { records } = topicNames(config.topics.prefix, config.topics.sharedPrefix);
        const versions = await Promise.all(
          config.resources.map(async (resource) => {
            const latest = await registry.latest(valueSubject(records(resource)));
            return latest ? [`${resource} ${latest.version}`] : [];
          }),
        );
        const known = versions.flat();
        return known.length > 0
          ? `versions ${known.join(', ')}`
          : 'no schema yet, run will register them';
      }),
    ]);
    const unwise = doubts.map((doubt) => ({
      what: 'topic',
      fine: true,
      isUnwise: true,
      detail: findingText(doubt),
    }));
    const taken = living
      ? [{ what: 'account', fine: true, isUnwise: true, detail: takenText(config.account, living) }]
      : [];
    return [...found, ...taken, ...unwise];
  } finally {
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

/** What nobody mends within seconds, so that it is no use to wait: a handshake that failed. */
function isLasting(error: unknown): boolean {
  return error instanceof CellarstreamError && error.context.tls !== undefined;
}

import { asyncScheduler, map, NEVER, of } from 'rxjs';
import type { Observable } from 'rxjs';
import { openAccount } from '../../src/account/account.ts';
import type { Account } from '../../src/account/account.ts';
import type { ApiList } from '../../src/account/api.ts';
import type { Lanes } from '../../src/account/quotas.ts';
import type { Config } from '../../src/config/config.ts';
import { listHooks } from '../../src/observe/list-hooks.ts';
import type { Hooks } from '../../src/observe/hooks.ts';
import type { Task } from '../../src/pipeline/task.ts';
import { listNamed } from '../../src/description/description.ts';
import { WINE } from '../../src/description/wine/wine.ts';
import type { Resource } from '../../src/description/description.ts';
import { stringifyJson } from '../../src/schemas/json/json.ts';
import type { JsonValue } from '../../src/schemas/json/json.ts';
import type { Destination } from '../../src/sinks/topics/destination.ts';
import type { Answer } from '../../src/streams/decode/response.ts';
import type { ListQuery } from '../../src/streams/http/page-request.ts';
import { LogicalClock } from '../../src/streams/http/logical-clock.ts';
import { PagePlan } from '../../src/streams/http/page-plan.ts';
import type { TokenSource } from '../../src/streams/http/token.ts';
import { parsingDecoder } from '../../src/streams/decode/decoder.ts';
import type { Decoder } from '../../src/streams/decode/decoder.ts';
import type { PageRecord } from '../../src/streams/records/page-record.ts';
import { PageRecords } from '../../src/streams/records/page-records.ts';
import { Body } from '../../src/streams/http/body.ts';
import { WINE_STAMPS } from './records.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const pass = <T>(source: Observable<T>) => source;

/** Lanes in which nobody waits. */
export const FREE_LANES: Lanes = {
  poll: pass,
  lookback: pass,
  initialSnapshot: pass,
  sweep: pass,
  fullScan: pass,
  singleRecords: pass,
  pollSpacingMs: () => 0,
  requestIntervalMs: 0,
};

/** Settings of a list that is polled all the time; others are left out. */
export const BUSY: Pick<
  Config,
  'account' | 'description' | 'topics' | 'poll' | 'pii' | 'volatileFields'
> = {
  account: 'estate',
  description: WINE,
  topics: { prefix: 'wine', sharedPrefix: 'wine', partitions: 1, replication: undefined },
  poll: {
    intervalMs: 1,
    lookbackMs: 10_000,
    pageSize: 100,
    sweepIntervalMs: 86_400_000,
    startFrom: undefined,
    deleteLimitPercent: 5,
    deleteProofMs: 0,
  },
  pii: { drop: [], mask: [], hmac: [], hmacKey: undefined },
  volatileFields: [],
};

/** Topics under `wine`, that nobody has made. */
export const NO_DESTINATION: Destination = {
  records: (resource) => `wine.${resource}`,
  statusChanges: new Map([['orders', { topic: 'wine.order-status-changes', schemaId: 2 }]]),
  deadLetters: { topic: 'wine.dead-letters', schemaId: 3 },
  cursors: 'wine.cursors',
  ledger: 'ledger',
  certificates: 'certificates',
  partitions: new Map(),
  maxMessageBytes: new Map(),
  inspect: () => Promise.resolve([]),
};

/** What a list says to a query. */
export type Answering = (
  query: ListQuery,
  clock: LogicalClock,
  decode: Decoder,
) => Observable<Answer>;

/** An account whose lists answer so. */
export function fakeAccount(config: Partial<Config>, answer: Answering): Account {
  const tokens: Pick<TokenSource, 'token$'> = {
    token$: of({ text: 't', askedAt: 0, lifeMs: 1e9, serverTime: START }),
  };
  const list = (): ApiList => {
    const clock = new LogicalClock();
    return {
      clock,
      plan: new PagePlan(),
      pages:
        ({ decode = parsingDecoder(undefined, WINE_STAMPS), hide } = {}) =>
        (query) =>
          answer(query, clock, decode).pipe(
            map((page) =>
              hide
                ? { ...page, data: page.data.map((each) => each.hidden(hide)), records: undefined }
                : page,
            ),
          ),
    };
  };
  return openAccount({
    config: { ...BUSY, ...config },
    api: { tokens: tokens as TokenSource, list },
    quotas: { lanes: () => FREE_LANES },
  });
}

/** A task of such an account. */
export function fakeTask(
  resource: Resource,
  config: Partial<Config>,
  answer: Answering,
  hooks: Hooks = {},
): Task {
  const settings = { ...BUSY, ...config } as Partial<Config> as Config;
  return {
    account: fakeAccount(config, answer),
    list: listNamed(settings.description, resource),
    config: settings,
    destination: NO_DESTINATION,
    hooks: listHooks(hooks, resource),
    scheduler: asyncScheduler,
    wallClock: () => asyncScheduler.now(),
    stop$: NEVER,
  };
}

/** Records as a decoder makes them of a page. */
export function decoded(data: readonly JsonValue[], decode: Decoder): readonly PageRecord[] {
  const bodyOf = (json: JsonValue) => new Body(Buffer.from(stringifyJson(json)));
  return new PageRecords(data.flatMap((json) => decode(bodyOf(json), 0).values)).all();
}

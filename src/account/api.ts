import { join } from 'node:path';
import type { Dispatcher } from 'undici';
import { firstValueFrom, race, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { ApiConfig, Resource } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { httpConnections } from '../core/http-connections.ts';
import type { Hooks } from '../observe/hooks.ts';
import { hasLogin } from '../description/credentials.ts';
import type { Credentials } from '../description/credentials.ts';
import type { ApiDescription, ListDescription } from '../description/description.ts';
import { loggableAddress } from '../streams/http/http.ts';
import type { RequestHooks } from '../streams/http/http.ts';
import type { ListRequest } from '../streams/decode/response.ts';
import { decodedList } from '../streams/decode/list-request.ts';
import type { DecodedListOptions } from '../streams/decode/list-request.ts';
import { sharedReads } from '../streams/http/response-reader.ts';
import { AnswerAges } from '../streams/http/response-age.ts';
import { LogicalClock } from '../streams/http/logical-clock.ts';
import { leased } from '../core/interceptors.ts';
import type { BodyPool } from '../streams/http/body.ts';
import type { Quotas } from './quotas.ts';
import { AnswerRules } from '../streams/http/answer-rules.ts';
import { login } from '../streams/http/login.ts';
import type { Token } from '../streams/http/login.ts';
import { pageRequest } from '../streams/http/page-request.ts';
import type { PageRequest } from '../streams/http/page-request.ts';
import { RequestPlan } from '../streams/http/request-plan.ts';
import { PagePlan } from '../streams/http/page-plan.ts';
import { credentialRemover } from '../streams/http/authorization.ts';
import { staticCredentials } from '../streams/http/static-credentials.ts';
import { refreshGrantOf } from '../streams/http/token-request.ts';
import { RefreshTokenFile } from '../state/refresh-token.ts';
import { FailingOffsets } from '../streams/decode/around-failing.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { tokenSource } from '../streams/http/token.ts';
import type { TokenSource } from '../streams/http/token.ts';
import { UnreadableTexts } from '../streams/decode/decoded-page.ts';

export interface ApiOptions {
  readonly config: ApiConfig;
  readonly description: ApiDescription;
  readonly loginLimit: Limit;
  /**
   * Observes requests and their responses, to count the requests of other processes: see {@link Quotas.reportsOf}. Default: they are not
   * counted.
   */
  readonly reportsOf?: Quotas['reportsOf'];
  readonly scheduler: SchedulerLike;
  readonly hooks?: Pick<Hooks, 'onRetry' | 'onLogin' | 'onRequest'>;
  /** Connections to the API. Default: a pool of at most `MAX_API_CONNECTIONS` connections. */
  readonly dispatcher?: Dispatcher;
  /** Pool of page buffers, shared by the accounts of a process. Default: each page gets new memory. */
  readonly bodies?: BodyPool | undefined;
  /**
   * Returns whether a request may be sent now. Called just before each request is written to its socket; if false, the request fails with
   * `LEASE_OVER`. Default: always true.
   */
  readonly maySend?: () => boolean;
  /** Folder for the newest refresh token, if the API replaces refresh tokens. Default: it is held in memory. */
  readonly stateDir?: string;
  /** Returns random numbers in [0, 1) for the jitter of pauses. Default `Math.random`. */
  readonly random?: () => number;
}

/** One account at the API: its connections, its token, its lists. */
export interface Api {
  readonly tokens: TokenSource;
  readonly list: (list: ListDescription) => ApiList;
  /**
   * Returns the function that requests pages of a list without decoding their records. `list` may be a modified copy of a list's
   * description.
   */
  readonly request: (list: ListDescription) => PageRequest;
  readonly close: () => Promise<void>;
}

/** Access to one list of the API. Personal fields are visible unless the option `hide` of `pages` hides them. */
export interface ApiList {
  /** Logical clock that numbers the begin and the end of each of the list's reads, so that overlapping reads are recognized. */
  readonly clock: LogicalClock;
  /**
   * Chooses list offset and size of the next page according to what the server was observed to support. Shared by all scans of the list.
   */
  readonly plan: PagePlan;
  /** Requests pages, decoded into records. By default each record is parsed as JSON and has no key. */
  readonly pages: (
    options?: Pick<DecodedListOptions, 'decode' | 'inspect' | 'hide'>,
  ) => ListRequest;
}

/** Time limit for opening a connection to the API, in ms. */
const CONNECT_TIMEOUT_MS = 10_000;
/**
 * How long the server may send no data until a request fails, in ms. If it is too small, slow pages fail. If it is too large, a dead
 * connection holds up a list's polls or sweeps.
 */
const RESPONSE_TIMEOUT_MS = 30_000;
/** Maximum number of connections to the API, for all lists together. If it is too small, slow responses of one list hold up the others. */
const MAX_API_CONNECTIONS = 24;

/** Maximum time for which closing the API waits for the response to a request with a refresh token, in ms. */
const LAST_RENEWAL_MS = 5_000;

export function openApi(options: ApiOptions): Api {
  const { config, description, loginLimit, scheduler, bodies, hooks = {} } = options;
  const { maySend, random = Math.random, stateDir } = options;
  const connections =
    options.dispatcher ??
    httpConnections({
      ...{ ca: config.ca, proxies: config.proxies },
      connections: MAX_API_CONNECTIONS,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      responseTimeoutMs: RESPONSE_TIMEOUT_MS,
      onread: sharedReads(),
    });
  const dispatcher = maySend ? leased(connections, maySend) : connections;
  const hooksOf = (what: string, resource?: Resource): RequestHooks => ({
    onAnswer: (answer) => hooks.onRequest?.({ what, ...answer }),
    onRetry: (retry) => hooks.onRetry?.({ what, ...(resource && { resource }), ...retry }),
  });

  const shared = {
    ...{ baseUrl: new URL(config.baseUrl), parameters: config.parameters },
    ...{ dispatcher, scheduler, random },
  };
  const ages = new AnswerAges();
  const rules = new AnswerRules(description);
  const { auth } = description;
  const credentials = (): Credentials =>
    Object.fromEntries(
      Object.entries(config.credentials).map(([name, secret]) => [name, secret.reveal()]),
    );
  const refreshTokens =
    stateDir !== undefined && refreshGrantOf(description)
      ? new RefreshTokenFile(join(stateDir, 'refresh-token'))
      : undefined;
  const cleanNext = credentialRemover(auth);
  const tokens = hasLogin(description)
    ? tokenSource({
        login: login({
          ...shared,
          ...{ description, credentials },
          ...(refreshTokens && { refreshTokens }),
          loginUrl: new URL(config.loginUrl),
          keyPatienceMs: config.keyPatienceMs,
          limit: loginLimit,
          rules,
          hooks: hooksOf('login'),
        }),
        scheduler,
        onToken: ({ lifeMs, serverTime, askedAt }) => {
          const aheadMs = serverTime === undefined ? undefined : serverTime - askedAt;
          hooks.onLogin?.({ lifeMs, aheadMs });
          // Login responses are not cached: their `Date` reveals pages that were cached before this process started.
          ages.of({ askedAt, elapsedMs: 0, date: serverTime, ageMs: undefined });
        },
        onPaced: (token, delayMs) => {
          const error = loginRateError(config.loginUrl, token);
          hooks.onRetry?.({ what: 'login', error, count: 1, delayMs });
        },
      })
    : staticCredentials({
        ...{ auth, scheduler, keyPatienceMs: config.keyPatienceMs },
        variables: () => ({ ...config.parameters, ...credentials() }),
      });
  /**
   * Observations about the responses of each list, by the list's name: texts that are not JSON and are accepted as unreadable records, list
   * offsets and page sizes that the server supports, and list offsets of records that make pages fail.
   */
  const findings = new Map(
    description.lists.map((list) => {
      const texts = new UnreadableTexts();
      const plan = new PagePlan(list);
      return [list.name, { texts, plan, failingOffsets: new FailingOffsets() }];
    }),
  );
  const requestPlan = (list: ListDescription) =>
    new RequestPlan({ ...shared, list, headers: description.headers });
  return {
    tokens,
    list: (list) => {
      const resource = list.name;
      const requests = requestPlan(list);
      const clock = new LogicalClock();
      const common = { ...shared, logicalClock: clock, hooks: hooksOf(resource, resource) };
      const found = findings.get(resource)!;
      const onSend = options.reportsOf?.(resource);
      const request = pageRequest(requests, {
        ...{ ...common, tokens, ages, bodies, rules },
        ...(onSend && { onSend }),
      });
      const listOptions = { ...common, ...found, cleanNext, list, url: requests.url, request };
      return {
        ...{ clock, plan: found.plan },
        pages: (options) => decodedList({ ...listOptions, ...options }),
      };
    },
    request: (list) =>
      pageRequest(requestPlan(list), {
        ...{ ...shared, hooks: hooksOf(list.name, list.name), tokens, ages, rules },
      }),
    close: async () => {
      // A response that is on its way may contain the only refresh token that is still valid.
      if (refreshTokens) {
        await firstValueFrom(race(refreshTokens.idle, timer(LAST_RENEWAL_MS, scheduler)));
      }
      await connections.destroy();
    },
  };
}

function loginRateError(loginUrl: string, token: Token | undefined): CellarstreamError {
  const life = token
    ? ` (the newest token is valid for ${Math.round(token.lifeMs / 1_000)} s)`
    : '';
  return new CellarstreamError(
    'API_ANSWER',
    `several logins at ${loggableAddress(new URL(loginUrl))} within a minute${life}: the next login is delayed. If this persists, the API's tokens expire too early or are refused: contact the operators of the API`,
  );
}

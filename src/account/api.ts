import type { Dispatcher } from 'undici';
import type { SchedulerLike } from 'rxjs';
import type { ApiConfig, Resource } from '../config/config.ts';
import { loginUrlOf } from '../config/config-of.ts';
import { CellarstreamError } from '../core/errors.ts';
import { httpConnections } from '../core/http-connections.ts';
import type { Hooks } from '../observe/hooks.ts';
import { RESOURCES } from '../resources/resources.ts';
import type { ResourceRules } from '../resources/resources.ts';
import { where } from '../streams/http/http.ts';
import type { RequestHooks } from '../streams/http/http.ts';
import type { ListRequest } from '../streams/decode/answer.ts';
import { decodedList } from '../streams/decode/list-request.ts';
import type { DecodedListOptions } from '../streams/decode/list-request.ts';
import { sharedReads } from '../streams/http/answer-reader.ts';
import { answerAges } from '../streams/http/answer-age.ts';
import { logicalClock } from '../streams/http/logical-clock.ts';
import { leased } from '../core/interceptors.ts';
import type { BodyPool } from '../streams/http/body.ts';
import { login } from '../streams/http/login.ts';
import type { Token } from '../streams/http/login.ts';
import { pageRequest } from '../streams/http/page-request.ts';
import type { LogicalClock } from '../streams/http/logical-clock.ts';
import { PagePlan } from '../streams/http/page-plan.ts';
import { FailingPlaces } from '../streams/decode/around-failing.ts';
import type { Limit } from '../streams/quota/token-bucket.ts';
import { tokenSource } from '../streams/http/token.ts';
import type { TokenSource } from '../streams/http/token.ts';
import { unreadableTexts } from '../streams/decode/decoded-page.ts';
import type { UnreadableTexts } from '../streams/decode/decoded-page.ts';

export interface ApiOptions {
  readonly config: ApiConfig;
  readonly loginLimit: Limit;
  readonly scheduler: SchedulerLike;
  readonly hooks?: Pick<Hooks, 'onRetry' | 'onLogin' | 'onRequest'>;
  /** Connections. Default one's own, with the limits of a careful client. */
  readonly dispatcher?: Dispatcher;
  /** Memory for pages, shared by all who are here. Default new memory for each. */
  readonly bodies?: BodyPool | undefined;
  /** Whether a request that is about to be written to its socket may be sent. Default it may. */
  readonly mayBeSent?: () => boolean;
  /** Uniform in [0, 1), for the jitter. Default Math.random. */
  readonly random?: () => number;
}

/**
 * One account at the API: its connections, its token, its lists. What becomes of a request is decided in
 * `streams/http`, what is tried again in `core/errors.ts`.
 */
export interface Api {
  readonly tokens: TokenSource;
  readonly list: (rules: ResourceRules) => ApiList;
  readonly close: () => Promise<void>;
}

/** One list of the API, with all that it holds. */
export interface ApiList {
  /** The order of its requests. */
  readonly clock: LogicalClock;
  /** Where its pages are asked for, by what the server was seen to do: for all scans of it. */
  readonly plan: PagePlan;
  /** Its pages as records. Default: they are parsed, and have no key. */
  readonly pages: (options?: Pick<DecodedListOptions, 'decode' | 'look' | 'hide'>) => ListRequest;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** A page of 1,000 records may take its time; a server that is silent for so long is gone. */
const ANSWER_TIMEOUT_MS = 30_000;
/** One for each lane of each resource: a slow answer holds up no other. */
const CONNECTIONS = 24;

export function openApi(options: ApiOptions): Api {
  const { config, loginLimit, scheduler, bodies, hooks = {} } = options;
  const {
    dispatcher: connections = connectionsTo(config),
    mayBeSent,
    random = Math.random,
  } = options;
  const dispatcher = mayBeSent ? leased(connections, mayBeSent) : connections;
  const hooksOf = (what: string, resource?: Resource): RequestHooks => ({
    onAnswer: (answer) => hooks.onRequest?.({ what, ...answer }),
    onRetry: (retry) => hooks.onRetry?.({ what, ...(resource && { resource }), ...retry }),
  });

  const ages = answerAges();
  const tokens = tokenSource({
    login: login({
      url: new URL(config.loginUrl),
      setting: config.loginUrl === loginUrlOf(config.baseUrl) ? 'API_BASE_URL' : 'API_LOGIN_URL',
      apiKey: () => config.key.reveal(),
      keyPatienceMs: config.keyPatienceMs,
      dispatcher,
      limit: loginLimit,
      scheduler,
      random,
      hooks: hooksOf('login'),
    }),
    scheduler,
    onToken: ({ lifeMs, serverTime, askedAt }) => {
      const aheadMs = serverTime === undefined ? undefined : serverTime - askedAt;
      hooks.onLogin?.({ lifeMs, aheadMs });
      // Nothing caches a login: its time shows a page that was cached before this process started.
      ages.of({ askedAt, elapsedMs: 0, date: serverTime, ageMs: undefined });
    },
    onPaced: (token, delayMs) => {
      const error = pacedError(config.loginUrl, token);
      hooks.onRetry?.({ what: 'login', error, count: 1, delayMs });
    },
  });
  const texts = Object.fromEntries(RESOURCES.map((name) => [name, unreadableTexts()])) as Record<
    Resource,
    UnreadableTexts
  >;
  /** Findings about each list, for as long as the process runs. */
  const found = Object.fromEntries(
    RESOURCES.map((name) => [name, { plan: new PagePlan(), places: new FailingPlaces() }]),
  ) as Record<Resource, { readonly plan: PagePlan; readonly places: FailingPlaces }>;
  return {
    tokens,
    list: ({ resource, path }) => {
      const shared = {
        url: new URL(`${config.baseUrl}${path}`),
        logicalClock: logicalClock(),
        scheduler,
        random,
        hooks: hooksOf(resource, resource),
      };
      const request = pageRequest({
        ...shared,
        dispatcher,
        tokens,
        ages,
        bodies,
      });
      return {
        clock: shared.logicalClock,
        plan: found[resource].plan,
        pages: (options) =>
          decodedList({
            ...shared,
            request,
            texts: texts[resource],
            ...found[resource],
            ...options,
          }),
      };
    },
    close: () => connections.destroy(),
  };
}

function pacedError(loginUrl: string, token: Token | undefined): CellarstreamError {
  const life = token ? ` gave a token good for ${Math.round(token.lifeMs / 1_000)} s, and` : '';
  return new CellarstreamError(
    'API_ANSWER',
    `the login at ${where(new URL(loginUrl))}${life} was needed several times within a minute, so the next one waits. If this goes on, the API's tokens are too short-lived or are refused: tell its operators`,
  );
}

function connectionsTo({ ca, proxies }: ApiConfig): Dispatcher {
  return httpConnections({
    ca,
    connections: CONNECTIONS,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    answerTimeoutMs: ANSWER_TIMEOUT_MS,
    onread: sharedReads(),
    proxies,
  });
}

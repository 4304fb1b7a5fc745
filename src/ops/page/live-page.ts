// A live page: receives the service's status events, polls the status while none arrive, and shows the state of the connection.

import type { AccountElsewhere } from '../status/status-json.ts';
import { byId, setAttributes, setText } from './dom.ts';
import type { ConnectionState, Verdict } from './status-verdict.ts';
import { newVersion, updateAll } from './page-updates.ts';
import type { Addresses } from './page-updates.ts';
import { verdictView } from './verdict-view.ts';
import { timeOfDay } from './words.ts';

interface LivePageOptions<T> extends Addresses {
  readonly verdictOf: (status: T | undefined, connection: ConnectionState) => Verdict;
  /** Returns the name of the account or fleet whose status it is, for the page's title. */
  readonly nameOf: (status: T) => string;
  readonly views: readonly ((status: T) => void)[];
}

/** Updates a status page while it is open, and shows on it whether its data is current. */
export function livePage<T extends { readonly at: number; readonly version: string }>(
  options: LivePageOptions<T>,
): void {
  const { verdictOf, nameOf, views } = options;
  const verdict = verdictView();
  const heard = byId('heard');

  let status: T | undefined;
  let connection: ConnectionState | undefined;
  /** The status that the views show. It does not change while the page is hidden. */
  let shown: T | undefined;
  /** Whether the last update of the views succeeded for all of them. */
  let viewsUpdated = true;

  const judge = (now: ConnectionState) => {
    verdict(verdictOf(status, now), status ? nameOf(status) : '');
  };
  const render = () => {
    // Before the check for a hidden page: the verdict also sets the tab's title and icon.
    const verdictUpdated = !connection || updateAll([judge], connection, reportError);
    if (document.visibilityState === 'hidden') return;
    const isLive = connection?.isLive === true;
    setAttributes(document.body, { 'data-live': String(isLive) });
    const isRefused = connection?.isLive === false && connection.refusal !== undefined;
    setAttributes(document.body, { 'data-empty': String(isRefused && !status) });
    if (!status && isRefused) setText(heard, 'no updates');
    if (!status) return;
    if (status !== shown) viewsUpdated = updateAll(views, status, reportError);
    shown = status;
    const time = timeOfDay(status.at);
    const broken = viewsUpdated && verdictUpdated ? '' : '; a part of this page fails: reload it';
    const heardOf = isLive ? `live, ${time}` : `as of ${time}, old`;
    setText(heard, heardOf + broken);
  };

  const checkVersion = newVersion(() => location.reload());
  connect<T>({
    ...options,
    onStatus: (received) => {
      status = received;
      checkVersion(received.version);
      render();
    },
    onConnection: (received) => {
      connection = received;
      render();
    },
  });
  document.addEventListener('visibilitychange', render);
}

interface ConnectionOptions<T> extends Addresses {
  readonly onStatus: (status: T) => void;
  /** Called when the page's connection to the service becomes live or fails, and after each poll of the status. */
  readonly onConnection: (connection: ConnectionState) => void;
}

/** Time without a status event after which the page says that it is not live, in ms; events are sent each second. */
const STALE_AFTER_MS = 2_400;
/** Time without a status event after which the connection is replaced, in ms, as it may be dead without an error. */
const RECONNECT_AFTER_MS = 5_000;
/** Interval at which the page polls the status while no status events arrive, in ms. */
const ASK_EVERY_MS = 10_000;
/** Interval at which the page checks whether status events still arrive, in ms. */
const LOOK_EVERY_MS = 200;

/**
 * Receives the service's status events while the page is open. An `EventSource` stops reconnecting when a response is not an event stream,
 * such as a proxy's 502, and does not notice a peer that vanished; so a connection without events for a while is replaced.
 *
 * While no events arrive the status is polled: the service may refuse further event streams, or a proxy may buffer them.
 */
export function connect<T>(options: ConnectionOptions<T>): void {
  const { url, statusUrl, onStatus, onConnection } = options;
  let source: EventSource | undefined;
  let isLive: boolean | undefined;
  let heardAt = Date.now();
  let openedAt = 0;
  let askedAt = -Infinity;

  const lose = () => {
    if (isLive === false) return;
    isLive = false;
    onConnection({ isLive, since: heardAt, isReachable: false });
    void ask();
  };
  const ask = async () => {
    askedAt = Date.now();
    const answer = await asked<T>(statusUrl);
    if (isLive !== false) return; // an event has arrived meanwhile
    if (answer?.status) onStatus(answer.status);
    const { refusal } = answer ?? {};
    onConnection({ isLive, since: heardAt, isReachable: answer !== undefined, refusal });
  };
  const open = () => {
    source?.close();
    openedAt = Date.now();
    source = new EventSource(url);
    source.addEventListener('status', ({ data }: MessageEvent<string>) => {
      heardAt = Date.now();
      if (isLive !== true) {
        isLive = true;
        onConnection({ isLive });
      }
      onStatus(JSON.parse(data) as T);
    });
    source.addEventListener('error', lose);
  };
  const look = () => {
    const quietMs = Date.now() - heardAt;
    if (quietMs > STALE_AFTER_MS) lose();
    if (isLive === false && Date.now() - askedAt > ASK_EVERY_MS) void ask();
    const isClosed = source?.readyState === EventSource.CLOSED;
    const givenMs = Date.now() - openedAt;
    if ((isClosed && givenMs > 1_000) || Math.min(quietMs, givenMs) > RECONNECT_AFTER_MS) open();
  };
  open();
  setInterval(look, LOOK_EVERY_MS);
  // After the browser has suspended the page, check the connection at once instead of at the next timer.
  document.addEventListener('visibilitychange', look);
  addEventListener('online', open);
}

/**
 * Requests the service's status once. Resolves with the status or, for a 404 response, with the reason; with undefined if the request
 * failed in another way.
 */
async function asked<T>(
  url: string,
): Promise<{ readonly status?: T; readonly refusal?: string } | undefined> {
  try {
    const signal = AbortSignal.timeout(RECONNECT_AFTER_MS);
    const answer = await fetch(url, { cache: 'no-store', signal });
    if (answer.ok) return { status: (await answer.json()) as T };
    return answer.status === 404
      ? { refusal: ((await answer.json()) as AccountElsewhere).error }
      : undefined;
  } catch {
    return undefined; // the page already shows that the connection is down
  }
}

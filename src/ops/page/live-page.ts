// A live page: receives the service's status events, polls the status while none arrive, and shows the state of the connection.

import type { AccountElsewhere } from '../status/status-json.ts';
import { byId, setAttributes, setText } from './dom.ts';
import type { ConnectionState, Verdict } from './status-verdict.ts';
import { addressesOf, newVersion, updateAll } from './page-updates.ts';
import type { Addresses } from './page-updates.ts';
import { verdictView } from './verdict-view.ts';
import { timeOfDay } from './words.ts';

interface LivePageOptions<T> {
  readonly verdictOf: (status: T | undefined, connection: ConnectionState) => Verdict;
  /** Returns the name of the account or fleet, for the page's title. */
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
  /** The status that the views show; it does not change while the page is hidden. */
  let shown: T | undefined;
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
  new StatusConnection<T>({
    ...addressesOf(document.body.dataset.page, location.pathname),
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
  /** Called when the connection becomes live or fails, and after each poll of the status. */
  readonly onConnection: (connection: ConnectionState) => void;
}

/** Time without a status event after which the page says that it is not live, in ms; events are sent each second. */
const STALE_AFTER_MS = 2_400;
/** Time without a status event after which the connection is replaced, in ms, as it may be dead without an error. */
const RECONNECT_AFTER_MS = 5_000;
/** Interval at which the status page requests the status while no status events arrive, in ms. */
const POLL_EVERY_MS = 10_000;
/** Interval at which the status page checks whether status events still arrive, in ms. */
const LOOK_EVERY_MS = 200;

/**
 * Receives the service's status events while the web page is open in the browser. If no events arrive for a while, polls the status and
 * replaces the connection.
 */
export class StatusConnection<T> {
  readonly #options: ConnectionOptions<T>;
  #source: EventSource | undefined;
  /** Whether the service's status (server-sent events) reaches this web page. Undefined until the first event or the first failure. */
  #isLive: boolean | undefined;
  #heardAt = Date.now();
  #openedAt = 0;
  #polledAt = -Infinity;

  constructor(options: ConnectionOptions<T>) {
    this.#options = options;
    this.#open();
    const look = () => this.#look();
    setInterval(look, LOOK_EVERY_MS);
    // After the browser has suspended the page, check the connection at once instead of at the next timer.
    document.addEventListener('visibilitychange', look);
    addEventListener('online', () => this.#open());
  }

  #open(): void {
    this.#source?.close();
    this.#openedAt = Date.now();
    this.#source = new EventSource(this.#options.url);
    this.#source.addEventListener('status', ({ data }: MessageEvent<string>) => this.#heard(data));
    this.#source.addEventListener('error', () => this.#lose());
  }

  #heard(data: string): void {
    this.#heardAt = Date.now();
    if (this.#isLive !== true) {
      this.#isLive = true;
      this.#options.onConnection({ isLive: true });
    }
    this.#options.onStatus(JSON.parse(data) as T);
  }

  #lose(): void {
    if (this.#isLive === false) return;
    this.#isLive = false;
    this.#options.onConnection({ isLive: false, since: this.#heardAt, isReachable: false });
    void this.#poll();
  }

  async #poll(): Promise<void> {
    const { statusUrl, onStatus, onConnection } = this.#options;
    this.#polledAt = Date.now();
    const answer = await requestStatus<T>(statusUrl);
    if (this.#isLive !== false) return; // an event has arrived meanwhile
    if (answer?.status) onStatus(answer.status);
    const { refusal } = answer ?? {};
    const isReachable = answer !== undefined;
    onConnection({ isLive: false, since: this.#heardAt, isReachable, refusal });
  }

  #look(): void {
    const quietMs = Date.now() - this.#heardAt;
    if (quietMs > STALE_AFTER_MS) this.#lose();
    // The service may refuse further event streams, or a proxy may buffer them.
    if (this.#isLive === false && Date.now() - this.#polledAt > POLL_EVERY_MS) void this.#poll();
    // An `EventSource` does not notice a peer that vanished, and stops reconnecting when a response is no event stream, such as a 502.
    const isClosed = this.#source?.readyState === EventSource.CLOSED;
    const openMs = Date.now() - this.#openedAt;
    if ((isClosed && openMs > 1_000) || Math.min(quietMs, openMs) > RECONNECT_AFTER_MS) {
      this.#open();
    }
  }
}

/**
 * Requests the status once. Returns the status, or the reason given in a 404 response, or undefined if the request failed in another way.
 */
async function requestStatus<T>(
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

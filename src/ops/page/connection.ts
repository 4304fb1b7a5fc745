import type { NotHere } from '../status/fleet-status-json.ts';
import type { ConnectionState } from './connection-state.ts';

export interface ConnectionOptions<T> {
  /** Of its events. */
  readonly url: string;
  /** Of the same, once. */
  readonly statusUrl: string;
  readonly onStatus: (status: T) => void;
  /** Told when it changes, or was asked about; not before it was lost or live for the first time. */
  readonly onConnection: (connection: ConnectionState) => void;
}

/** A word comes each second: after so long, ms, its absence is said. */
const LOST_AFTER_MS = 2_400;
/** And after so long the connection is given up for a new one: it may be dead without knowing. */
const GIVE_UP_AFTER_MS = 5_000;
/** A service that answers, but tells no events, is asked so often. */
const ASK_EVERY_MS = 10_000;
const LOOK_EVERY_MS = 200;

/**
 * Listens to the service for as long as the page is open. A browser's own retries end for good when
 * an answer is not an event stream, such as a proxy's 502, and never begin when the other side went
 * without a word: so whatever has said nothing for a while is replaced.
 *
 * A service may have no place for one more listener, or a proxy keep events to itself. So while none
 * come the status is asked for now and then, like any other page.
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
    onConnection({ isLive, since: heardAt, answers: false });
    void ask();
  };
  const ask = async () => {
    askedAt = Date.now();
    const answer = await asked<T>(statusUrl);
    if (isLive !== false) return; // it was heard meanwhile
    if (answer?.status) onStatus(answer.status);
    const { refusal } = answer ?? {};
    onConnection({ isLive, since: heardAt, answers: answer !== undefined, refusal });
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
    if (quietMs > LOST_AFTER_MS) lose();
    if (isLive === false && Date.now() - askedAt > ASK_EVERY_MS) void ask();
    const isClosed = source?.readyState === EventSource.CLOSED;
    const givenMs = Date.now() - openedAt;
    if ((isClosed && givenMs > 1_000) || Math.min(quietMs, givenMs) > GIVE_UP_AFTER_MS) open();
  };
  open();
  setInterval(look, LOOK_EVERY_MS);
  // A page that was put to sleep does not wait for the next timer.
  document.addEventListener('visibilitychange', look);
  addEventListener('online', open);
}

interface Answer<T> {
  readonly status?: T;
  readonly refusal?: string;
}

/** What is answered; undefined where nobody does, or not well. */
async function asked<T>(url: string): Promise<Answer<T> | undefined> {
  try {
    const signal = AbortSignal.timeout(GIVE_UP_AFTER_MS);
    const answer = await fetch(url, { cache: 'no-store', signal });
    if (answer.ok) return { status: (await answer.json()) as T };
    return answer.status === 404
      ? { refusal: ((await answer.json()) as NotHere).error }
      : undefined;
  } catch {
    return undefined; // the page says already that nothing is heard
  }
}

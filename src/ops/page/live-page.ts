// A page that stays live: it listens to the events of its service, or asks for the status while none come, and shows how it is told.

import type { NotHere } from '../status/status-json.ts';
import { byId, setAttributes, setText } from './dom.ts';
import type { ConnectionState, Verdict } from './judgement.ts';
import { newVersion, updateAll } from './page-updates.ts';
import type { Addresses } from './page-updates.ts';
import { verdictView } from './verdict.ts';
import { timeOfDay } from './words.ts';

interface LivePageOptions<T> extends Addresses {
  readonly verdictOf: (status: T | undefined, connection: ConnectionState) => Verdict;
  /** What it is the page of. */
  readonly nameOf: (status: T) => string;
  readonly views: readonly ((status: T) => void)[];
}

/** Keeps the page up to date for as long as it is open, and says whether it is. */
export function livePage<T extends { readonly at: number; readonly version: string }>(
  options: LivePageOptions<T>,
): void {
  const { verdictOf, nameOf, views } = options;
  const verdict = verdictView();
  const heard = byId('heard');

  let status: T | undefined;
  let connection: ConnectionState | undefined;
  /** Of which the figures are: not brought up to date while nobody can see them. */
  let shown: T | undefined;
  /** Whether each part shows it. */
  let isWhole = true;

  const judge = (now: ConnectionState) => {
    verdict(verdictOf(status, now), status ? nameOf(status) : '');
  };
  const render = () => {
    // Also the tab's title and icon.
    const isToldWell = !connection || updateAll([judge], connection, reportError);
    if (document.visibilityState === 'hidden') return;
    const isLive = connection?.isLive === true;
    setAttributes(document.body, { 'data-live': String(isLive) });
    const isRefused = connection?.isLive === false && connection.refusal !== undefined;
    setAttributes(document.body, { 'data-empty': String(isRefused && !status) });
    if (!status && isRefused) setText(heard, 'no updates');
    if (!status) return;
    if (status !== shown) isWhole = updateAll(views, status, reportError);
    shown = status;
    const time = timeOfDay(status.at);
    const broken = isWhole && isToldWell ? '' : '; a part of this page fails: reload it';
    const heardOf = isLive ? `live, ${time}` : `as of ${time}, old`;
    setText(heard, heardOf + broken);
  };

  const versionTold = newVersion(() => location.reload());
  connect<T>({
    ...options,
    onStatus: (told) => {
      status = told;
      versionTold(told.version);
      render();
    },
    onConnection: (told) => {
      connection = told;
      render();
    },
  });
  document.addEventListener('visibilitychange', render);
}

interface ConnectionOptions<T> extends Addresses {
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
 * Listens to the service for as long as the page is open. A browser's own retries end for good when an answer is not an event stream, such
 * as a proxy's 502, and never begin when the other side went without a word: so whatever has said nothing for a while is replaced.
 *
 * A service may have no place for one more listener, or a proxy keep events to itself. So while none come the status is asked for now and
 * then, like any other page.
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

/** What is answered; undefined where nobody does, or not well. */
async function asked<T>(
  url: string,
): Promise<{ readonly status?: T; readonly refusal?: string } | undefined> {
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

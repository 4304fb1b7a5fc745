import { connect } from './connection.ts';
import type { ConnectionState } from './connection-state.ts';
import { byId, setAttributes, setText } from './dom.ts';
import type { Verdict } from './verdict-type.ts';
import { newVersion } from './new-version.ts';
import { updateAll } from './update-all.ts';
import { verdictView } from './verdict.ts';
import { timeOfDay } from './words.ts';

export interface LivePageOptions<T> {
  /** Of the events, and of the same once. */
  readonly url: string;
  readonly statusUrl: string;
  readonly verdictOf: (status: T | undefined, connection: ConnectionState) => Verdict;
  /** What it is the page of. */
  readonly nameOf: (status: T) => string;
  readonly views: readonly ((status: T) => void)[];
}

/** Keeps the page up to date for as long as it is open, and says whether it is. */
export function livePage<T extends { readonly at: number; readonly version: string }>(
  options: LivePageOptions<T>,
): void {
  const { url, statusUrl, verdictOf, nameOf, views } = options;
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
    url,
    statusUrl,
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

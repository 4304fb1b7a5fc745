import type { Status } from '../status-json.ts';

/** `lost`: since when nothing has been heard, ms on this machine's clock. */
export type Connection =
  { readonly isLive: true } | { readonly isLive: false; readonly since: number };

export interface ConnectionOptions {
  readonly url: string;
  readonly onStatus: (status: Status) => void;
  /** Told when it changes; not before it was lost or live for the first time. */
  readonly onConnection: (connection: Connection) => void;
}

/** A word comes each second: after so long, ms, its absence is said. */
const LOST_AFTER_MS = 2_400;
/** And after so long the connection is given up for a new one: it may be dead without knowing. */
const GIVE_UP_AFTER_MS = 5_000;
const LOOK_EVERY_MS = 200;

/**
 * Listens to the service for as long as the page is open. A browser's own retries end for good when
 * an answer is not an event stream, such as a proxy's 502, and never begin when the other side went
 * without a word: so whatever has said nothing for a while is replaced.
 */
export function connect({ url, onStatus, onConnection }: ConnectionOptions): void {
  let source: EventSource | undefined;
  let isLive: boolean | undefined;
  let heardAt = Date.now();
  let openedAt = 0;

  const lose = () => {
    if (isLive === false) return;
    isLive = false;
    onConnection({ isLive, since: heardAt });
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
      onStatus(JSON.parse(data) as Status);
    });
    source.addEventListener('error', lose);
  };
  const look = () => {
    const quietMs = Date.now() - heardAt;
    if (quietMs > LOST_AFTER_MS) lose();
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

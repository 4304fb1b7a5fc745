import type { FirstReadStatus } from './status-json.ts';

/** The pace of an initial snapshot is that of so long, ms. */
const OVER_MS = 60_000;
/** Pages of which it is made, at most. */
const MAX_PAGES = 200;

/** How far an initial snapshot is, how fast it goes, and when it will be done. */
export interface SnapshotPace {
  readonly add: (progress: Pick<FirstReadStatus, 'read' | 'total' | 'done'>) => void;
  readonly status: () => FirstReadStatus | null;
}

/** @param now The clock: ms, which never goes back. */
export function snapshotPace(now: () => number): SnapshotPace {
  let newest: Pick<FirstReadStatus, 'read' | 'total' | 'done'> | undefined;
  let pages: { readonly at: number; readonly read: number }[] = [];
  const forget = () => {
    while (pages.length > MAX_PAGES || (pages[0] && now() - pages[0].at > OVER_MS)) pages.shift();
  };
  return {
    add: ({ read, total, done }) => {
      // A process that takes over goes on where it was committed: a little before.
      if (newest && read < newest.read) pages = [];
      newest = { read, total, done };
      pages.push({ at: now(), read });
      forget();
    },
    status: () => {
      if (!newest) return null;
      forget();
      const { read, total, done } = newest;
      const first = pages[0];
      const elapsedMs = first ? now() - first.at : OVER_MS; // none: no page for so long
      const isKnown = !done && pages.length !== 1 && elapsedMs > 0;
      const perMs = isKnown && first ? (read - first.read) / elapsedMs : 0;
      return {
        ...newest,
        perSecond: isKnown ? perMs * 1_000 : null,
        leftMs: perMs > 0 ? Math.max(0, total - read) / perMs : null,
      };
    },
  };
}

import { map, switchMap, take } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ServerClock } from '../../streams/http/server-clock.ts';
import { poll } from '../../streams/paging/poll.ts';
import type { Task } from '../task.ts';
import type { Lane } from './lane.ts';
import type { PollBatch } from './read-batch.ts';
import type { SnapshotReads } from './snapshot-reads.ts';

export interface PollReadsOptions {
  readonly task: Pick<Task, 'config' | 'scheduler'>;
  readonly lane: Lane;
  /** For the polls that look back far: they keep no other waiting. */
  readonly lookBack: Lane;
  readonly clock: ServerClock;
  /** Where the first window begins, if none was read yet. */
  readonly began$: SnapshotReads['began$'];
  /** Where the next window begins, ms; null when none was read yet. */
  readonly since: number | null;
  /** Whether the initial snapshot is done. */
  readonly isDone: () => boolean;
  /** As {@link Lanes.spacingMs}, for what runs beside the polls just now. */
  readonly spacingMs: () => number;
}

/** Reads what was modified, window by window, from where the polls or the initial snapshot began. */
export function pollReads(options: PollReadsOptions): Observable<PollBatch> {
  const { task, lane, lookBack, clock, began$, since, isDone, spacingMs } = options;
  const { lookbackMs, intervalMs } = task.config.poll;
  /** Whether the poll that goes on began behind the initial snapshot. */
  let isBehind = false;
  return began$.pipe(
    take(1),
    switchMap((startedAt) =>
      poll({
        scan: (dates) => {
          isBehind = isDone();
          return lane.scan(dates);
        },
        scanBack: (dates) => lookBack.scan(dates),
        clock,
        since: since ?? startedAt,
        lookbackMs,
        ...(intervalMs !== undefined && { intervalMs }),
        spacingMs,
        scheduler: task.scheduler,
      }),
    ),
    map(({ page, since, looksBack }): PollBatch => {
      const brought = (looksBack ? lookBack : lane).arrived(page.answer);
      return { lane: 'poll', ...brought, page, since, catchesUp: since !== undefined && isBehind };
    }),
  );
}

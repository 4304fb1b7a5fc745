import type { MonoTypeOperatorFunction } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Task } from '../task.ts';

/**
 * First pause before a refused lane is retried, in ms. Later pauses grow up to {@link MAX_MS}. If this value is too small, requests are
 * wasted on refusals.
 */
const FIRST_MS = 30_000;
const MAX_MS = 10 * 60_000;

/**
 * Restricts the effect of a refusal to one lane: if the API responds with a status that is not transient, resubscribes after a pause, while
 * the other lanes of the list continue. Passes other errors on, as they concern the whole list.
 */
export function retryRefusedLane<T>(options: {
  readonly task: Pick<Task, 'list' | 'hooks' | 'scheduler'>;
  /** Whether other lanes of the list still work. If they do not, the error ends the list's task, which is retried as a whole. */
  readonly hasOtherLanes: () => boolean;
  /** Called before each pause that follows a refusal. */
  readonly onRefused?: () => void;
}): MonoTypeOperatorFunction<T> {
  const { task, hasOtherLanes, onRefused } = options;
  const { list, hooks, scheduler } = task;
  return backoff<T>({
    canPass: (error) =>
      error instanceof CellarstreamError && error.code === 'API_STATUS' && hasOtherLanes(),
    firstMs: FIRST_MS,
    maxMs: MAX_MS,
    scheduler,
    onRetry: (retry) => {
      onRefused?.();
      hooks.onRetry({ what: list.name, ...retry });
    },
  });
}

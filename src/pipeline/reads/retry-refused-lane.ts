import type { MonoTypeOperatorFunction } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Task } from '../task.ts';

/** Bounds of the first pause before a refused lane is retried, and of all later ones, in ms. Too small: requests are wasted on refusals. */
const FIRST_MS = 30_000;
const MAX_MS = 10 * 60_000;

/**
 * Confines a refusal to one lane: if the API answers with a status that is not transient, resubscribes after a pause, while the list's
 * other lanes go on. Passes other errors on, which concern the whole list.
 */
export function retryRefusedLane<T>(options: {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  /** Whether other lanes of the list are still working. If not, the error ends the list's task, which has retries of its own. */
  readonly hasOtherLanes: () => boolean;
  /** Called before each pause that follows a refusal. */
  readonly onRefused?: () => void;
}): MonoTypeOperatorFunction<T> {
  const { task, hasOtherLanes, onRefused } = options;
  const { rules, hooks, scheduler } = task;
  return backoff<T>({
    canPass: (error) =>
      error instanceof CellarstreamError && error.code === 'API_STATUS' && hasOtherLanes(),
    firstMs: FIRST_MS,
    maxMs: MAX_MS,
    scheduler,
    onRetry: (retry) => {
      onRefused?.();
      hooks.onRetry({ what: rules.resource, ...retry });
    },
  });
}

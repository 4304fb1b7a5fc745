import type { MonoTypeOperatorFunction } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Task } from '../task.ts';

export interface RetryRefusedLaneOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  /** Whether other lanes of the list are still working. If not, the error ends the list's task, which has retries of its own. */
  readonly hasOtherLanes: () => boolean;
  /** Called before each pause that follows a refusal. Default: nothing is called. */
  readonly onRefused?: () => void;
}

/**
 * Upper bounds of the first pause before a refused lane is retried, and of every later pause, in ms. Too small: requests are wasted on
 * refusals. Too large: the lane resumes late.
 */
const FIRST_MS = 30_000;
const MAX_MS = 10 * 60_000;

/**
 * Confines a refusal to one lane (stream of reads of a list): if the API answers a request with a status that is not transient,
 * resubscribes to the lane after a pause, while the list's other lanes go on. Passes other errors on, which concern the whole list. If the
 * API refuses the whole list, the other lanes fail as well and end the task.
 */
export function retryRefusedLane<T>(options: RetryRefusedLaneOptions): MonoTypeOperatorFunction<T> {
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

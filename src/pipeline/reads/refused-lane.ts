import type { MonoTypeOperatorFunction } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { Task } from '../task.ts';

export interface RefusedLaneOptions {
  readonly task: Pick<Task, 'rules' | 'hooks' | 'scheduler'>;
  /** Whether other lanes of the list go on meanwhile. If not, the error ends the list's task, which tries again by itself. */
  readonly goesAlone: () => boolean;
  /** Called before each pause. Default nothing. */
  readonly onRefused?: () => void;
}

/** Ceiling of the first pause and of all pauses, in ms. */
const FIRST_MS = 30_000;
const MAX_MS = 10 * 60_000;

/**
 * Keeps a lane's trouble to that lane: when the API answers one of its requests with a status that does not pass, the lane is
 * subscribed to again after a pause, while the list's other lanes go on. Other errors, which concern the whole list, go through. A refusal
 * of the whole list reaches the other lanes as well, and ends the task there.
 */
export function refusedLane<T>(options: RefusedLaneOptions): MonoTypeOperatorFunction<T> {
  const { task, goesAlone, onRefused } = options;
  const { rules, hooks, scheduler } = task;
  return backoff<T>({
    canPass: (error) =>
      error instanceof CellarstreamError && error.code === 'API_STATUS' && goesAlone(),
    firstMs: FIRST_MS,
    maxMs: MAX_MS,
    scheduler,
    onRetry: (retry) => {
      onRefused?.();
      hooks.onRetry({ what: rules.resource, ...retry });
    },
  });
}

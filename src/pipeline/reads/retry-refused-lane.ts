import type { MonoTypeOperatorFunction } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { backoff } from '../../streams/flow/backoff.ts';
import type { PageLane } from '../../account/page-lane.ts';
import type { Task } from '../task.ts';

/**
 * Upper bound of the first pause before refused reads are tried again, in ms. The bound doubles with each refusal in a row, up to
 * {@link MAX_MS}. If it is too small, requests are wasted on refusals.
 */
const FIRST_MS = 30_000;
const MAX_MS = 10 * 60_000;

/**
 * Operator that retries one of a list's concurrent streams of reads: if the API refuses a request (`API_STATUS`), it resubscribes after a
 * pause. Other errors are passed on.
 *
 * @param hasOtherLanes Whether other streams, such as polls, read the list at present. If not, the refusal is passed on as an error.
 * @param lane Lane whose page slot the refused request holds, and the operator releases. Default: the stream releases its slots itself.
 */
export function retryRefusedLane<T>(
  { list, hooks, scheduler }: Pick<Task, 'list' | 'hooks' | 'scheduler'>,
  hasOtherLanes: () => boolean,
  lane?: Pick<PageLane, 'pageSlots'>,
): MonoTypeOperatorFunction<T> {
  return backoff<T>({
    canPass: (error) =>
      error instanceof CellarstreamError && error.code === 'API_STATUS' && hasOtherLanes(),
    firstMs: FIRST_MS,
    maxMs: MAX_MS,
    scheduler,
    onRetry: (retry) => {
      lane?.pageSlots.release();
      hooks.onRetry({ what: list.name, ...retry });
    },
  });
}

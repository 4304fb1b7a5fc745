import { timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { AccountConfig } from '../config/accounts.ts';
import type { Opening } from '../pipeline/list-task.ts';
import { serveAccount } from '../pipeline/serve-account.ts';
import type { ServeAccountOptions } from '../pipeline/serve-account.ts';
import { warmAccount } from '../pipeline/warm-account.ts';
import { BodyPool } from '../streams/http/body.ts';

export type AccountWork = ReturnType<typeof accountWork>;

export interface ServeOptions extends Required<
  Pick<ServeAccountOptions, 'stop$' | 'pollNow$' | 'hooks' | 'sideMessages'>
> {
  readonly config: AccountConfig;
}

/**
 * Maximum number of lists that are opened at the same time. An account's first list is opened at once, even beyond the maximum. If the
 * maximum is too large, restores compete for disk and network. If it is too small, accounts start slowly.
 */
const MAX_CONCURRENT_OPENINGS = 6;
/** Time in ms after which a list that is still being opened no longer counts towards {@link MAX_CONCURRENT_OPENINGS}. */
const OPENING_TIMEOUT_MS = 5_000;

export function accountWork(
  parts: Pick<ServeAccountOptions, 'instance' | 'clients' | 'signals' | 'scheduler'>,
) {
  const { instance, clients, scheduler } = parts;
  const opening = openingQueue(scheduler);
  const bodies = new BodyPool();
  return {
    /** Restores the account's images into the local store while another instance serves the account. */
    warm: (config: AccountConfig, signal: AbortSignal): Promise<void> =>
      warmAccount({ config, clients, instance, signal }),
    /** Claims the account and serves it until `stop$` emits. `stop$` must replay its value to late subscribers. */
    serve: (serving: ServeOptions): Promise<void> =>
      serveAccount({ ...parts, ...serving, bodies, opening }),
  };
}

/**
 * Creates the queue in which an instance opens its lists: the first list of an account at once, the second lists of all accounts next, then
 * the third, and so on.
 */
export function openingQueue(scheduler: SchedulerLike): Opening {
  let inFlight = 0;
  /** Lists that wait to be opened, sorted by their index within their account (`nth`), then by arrival. */
  const waiting: { readonly nth: number; readonly enter: () => void }[] = [];
  const next = (): void => {
    if (inFlight < MAX_CONCURRENT_OPENINGS) waiting.shift()?.enter();
  };
  return async (open, nth) => {
    await new Promise<void>((resolve) => {
      const enter = () => {
        inFlight += 1;
        resolve();
      };
      if (nth === 0) return enter();
      const behind = waiting.findIndex((other) => other.nth > nth);
      waiting.splice(behind < 0 ? waiting.length : behind, 0, { nth, enter });
      next();
    });
    const slot = timer(OPENING_TIMEOUT_MS, scheduler).subscribe();
    slot.add(() => {
      inFlight -= 1;
      next();
    });
    try {
      return await open();
    } finally {
      slot.unsubscribe();
    }
  };
}

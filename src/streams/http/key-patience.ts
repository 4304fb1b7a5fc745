import type { SchedulerLike } from 'rxjs';

/** Whether the refusal of an API key can pass: told of each login as it ends. */
export interface KeyPatience {
  /** A token was given for this key. */
  accepted(key: string): void;
  /** It was refused: whether to try again. */
  refused(key: string): boolean;
  /** A login begins, or failed in a way that says nothing of the key: the next refusal is the first one. */
  restart(): void;
}

/**
 * A gateway in trouble refuses good keys too. So a key that was accepted before is wrong only when it
 * was refused for `patienceMs`, and by every answer in that time; one that never was is wrong at once.
 */
export function keyPatience(patienceMs: number, scheduler: SchedulerLike): KeyPatience {
  let known: string | undefined;
  let refusedSince: number | undefined;
  return {
    accepted: (key) => {
      known = key;
    },
    refused: (key) => {
      refusedSince ??= scheduler.now();
      return key === known && scheduler.now() - refusedSince < patienceMs;
    },
    restart: () => {
      refusedSince = undefined;
    },
  };
}

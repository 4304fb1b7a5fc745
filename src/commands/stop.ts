import { ReplaySubject } from 'rxjs';
import type { Observable } from 'rxjs';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/**
 * A second signal within this time (ms) counts as the same Ctrl-C: in a process started by npm, a signal arrives twice, from the terminal
 * and from npm.
 */
const SAME_WITHIN_MS = 500;

/**
 * Returns an observable that emits and replays the first signal that asks the process to stop. A second signal ends the process
 * immediately, unless it arrives within {@link SAME_WITHIN_MS}.
 */
export function stopSignals(): Observable<NodeJS.Signals> {
  const stop$ = new ReplaySubject<NodeJS.Signals>(1);
  let stoppedAt: number | undefined;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      const now = performance.now();
      if (stoppedAt === undefined) {
        stoppedAt = now;
        stop$.next(signal);
      } else if (now - stoppedAt > SAME_WITHIN_MS) process.exit(1);
    });
  }
  return stop$;
}

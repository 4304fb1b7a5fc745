import { ReplaySubject } from 'rxjs';
import type { Observable } from 'rxjs';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
/** Ctrl-C below npm comes twice, from the terminal and from npm: so soon after the first, ms, it is the same. */
const SAME_WITHIN_MS = 500;

/** The signal that asks the process to stop, replayed; a second one ends it at once. */
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

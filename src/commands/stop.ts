import { ReplaySubject } from 'rxjs';
import type { Observable } from 'rxjs';

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** The signal that asks the process to stop, replayed; a second one ends it at once. */
export function stopSignals(): Observable<NodeJS.Signals> {
  const stop$ = new ReplaySubject<NodeJS.Signals>(1);
  for (const signal of SIGNALS) {
    process.once(signal, () => {
      stop$.next(signal);
      for (const again of SIGNALS) process.once(again, () => process.exit(1));
    });
  }
  return stop$;
}

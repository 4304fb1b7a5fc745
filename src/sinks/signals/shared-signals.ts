import { defer, from, Observable, ReplaySubject, share, switchMap, take, tap } from 'rxjs';
import type { SignalBatch, SignalTopic } from './kafka-signals.ts';

/**
 * A topic that many follow, over one reader: whoever comes reads what stands before by itself, and then shares. What
 * comes in between may come twice.
 */
export function sharedSignals(topic: SignalTopic): SignalTopic {
  /** Emits when it is known where the shared reader begins: what is read to the end after that joins it without a gap. */
  let begun$ = new ReplaySubject<void>(1);
  const live$ = defer(() => {
    const begins$ = (begun$ = new ReplaySubject<void>(1));
    return from(topic.ends()).pipe(
      tap(() => begins$.next()),
      switchMap((ends) => topic.read({ from: ends, follow: true })),
    );
  }).pipe(share());

  const follow = (options: Parameters<SignalTopic['read']>[0]) =>
    new Observable<SignalBatch>((subscriber) => {
      /** What comes while the rest is read: of a topic that people write to by hand. */
      let waiting: SignalBatch[] | undefined = [];
      const failed = (error: unknown) => subscriber.error(error);
      subscriber.add(
        live$.subscribe({
          next: (batch) => (waiting ? void waiting.push(batch) : subscriber.next(batch)),
          error: failed,
        }),
      );
      const before$ = begun$.pipe(
        take(1),
        switchMap(() => topic.read({ ...options, follow: false })),
      );
      subscriber.add(
        before$.subscribe({
          next: (batch) => subscriber.next(batch),
          error: failed,
          complete: () => {
            for (const batch of waiting ?? []) subscriber.next(batch);
            waiting = undefined;
          },
        }),
      );
    });
  return {
    ...topic,
    read: (options) => (options.follow ? follow(options) : topic.read(options)),
  };
}

import { Observable } from 'rxjs';

/** Permits for a number of pages between their request and their commit. */
export interface Permits {
  /** Takes one: emits and completes once there is one. Unsubscribed before, it takes none. */
  readonly acquire: Observable<void>;
  /** Gives one back. */
  release(): void;
}

/**
 * Back-pressure for a chain that requests by itself: at most `places` pages are under way, so that
 * a slow or absent broker stops the requests instead of filling the memory.
 */
export function permits(places: number): Permits {
  let free = places;
  const waiting: (() => void)[] = [];
  const next = (): void => {
    if (free === 0) return;
    const enter = waiting.shift();
    if (!enter) return;
    free -= 1;
    enter();
  };
  return {
    acquire: new Observable((subscriber) => {
      const enter = () => {
        subscriber.next();
        subscriber.complete();
      };
      waiting.push(enter);
      next();
      return () => {
        const place = waiting.indexOf(enter);
        if (place >= 0) waiting.splice(place, 1);
      };
    }),
    release: () => {
      free = Math.min(places, free + 1);
      next();
    },
  };
}

import { Observable } from 'rxjs';

/** A fixed number of page slots: capacity for one page from its request to its commit. */
export interface PageSlots {
  /** Takes a page slot (capacity for one page) on subscription: waits until one is free, then emits once and completes. */
  readonly acquire: Observable<void>;
  /** Frees an acquired page slot. To be called once its page has been committed or dropped, or the request for the page has failed. */
  release(): void;
}

/**
 * Creates `count` page slots: capacity for that number of pages between request and commit. While a slow or unreachable broker delays
 * commits, no slot becomes free, so requests stop and memory stays bounded.
 */
export function pageSlots(count: number): PageSlots {
  let free = count;
  const waiting = new Set<() => void>();
  const next = (): void => {
    const [enter] = waiting;
    if (free === 0 || !enter) return;
    waiting.delete(enter);
    free -= 1;
    enter();
  };
  return {
    acquire: new Observable((subscriber) => {
      const enter = () => {
        subscriber.next();
        subscriber.complete();
      };
      waiting.add(enter);
      next();
      return () => void waiting.delete(enter);
    }),
    release: () => {
      free = Math.min(count, free + 1);
      next();
    },
  };
}

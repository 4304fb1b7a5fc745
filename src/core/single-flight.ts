/**
 * Wraps `ask` so that concurrent callers share one call. Callers that arrive while a call runs share the next one, which begins when that
 * one ends: no result is older than its request.
 */
export function singleFlight<T>(ask: () => Promise<T>): () => Promise<T> {
  let inFlight: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  return () => {
    next ??= inFlight.then(() => {
      next = undefined;
      const answer = ask();
      inFlight = answer.catch(() => undefined); // the callers receive the error
      return answer;
    });
    return next;
  };
}

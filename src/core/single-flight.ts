/**
 * Wraps `ask` so that only one call runs at a time. Callers that arrive meanwhile share the next call, which begins when the running one
 * ends.
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

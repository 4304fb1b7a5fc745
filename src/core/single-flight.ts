/**
 * Wraps the function `ask` so that concurrent callers share one call of it and its result. Callers that arrive while a call is running
 * share the next one, which begins when the running one ends, so that no caller gets a result that is older than its request.
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

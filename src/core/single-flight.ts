/**
 * Wraps `ask` so that concurrent callers share calls. Callers that arrive while a call runs share the next call, which begins when the
 * running one ends. So no caller gets a result of a call that began before the caller's request.
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

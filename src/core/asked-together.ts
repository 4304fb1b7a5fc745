/**
 * A question that many ask at once, asked once for all of them. An answer is never older than the question: who asks while one
 * is under way shares the next.
 */
export function askedTogether<T>(ask: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | undefined;
  return () => {
    next ??= underWay.then(() => {
      next = undefined;
      const answer = ask();
      underWay = answer.catch(() => undefined); // who asked has the error
      return answer;
    });
    return next;
  };
}

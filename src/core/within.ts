/** Returns the result of `work`. If `work` takes longer than `ms` ms, rejects with the error that `late` returns; `work` is not aborted. */
export async function within<T>(ms: number, work: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), ms);
  });
  try {
    return await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined); // after a timeout its own error must not go unhandled
  }
}

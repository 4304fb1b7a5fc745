/** A call that no broker has got: nothing has come of it. */
export class NotSent extends Error {
  override readonly name = 'NotSent';
}

/** A call that went out and was not answered: nobody knows what has come of it. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** What kafkajs has thrown, where a connection is to blame. */
export function kafkasOf(error: unknown): unknown {
  return error instanceof NoAnswer || error instanceof NotSent ? error.cause : error;
}

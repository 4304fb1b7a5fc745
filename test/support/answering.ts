import type { Dispatcher } from 'undici';

/** What is answered. */
export interface Given {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
  /** What it ends with, if not well. */
  readonly cutBy?: Error;
}

/** A dispatcher without a network: as much of one as an exchange takes. What it tells of is gone at once, as a socket's memory is. */
export function answering(
  answer: (asked: Dispatcher.DispatchOptions, isAborted: () => boolean) => Promise<Given>,
): Dispatcher {
  const dispatch: Dispatcher['dispatch'] = (asked, handler) => {
    let isAborted = false;
    const fail = (error: Error) => {
      if (!isAborted) handler.onError!(error);
      isAborted = true;
    };
    handler.onConnect!((error) => fail(error!));
    const given = answer(asked, () => isAborted);
    given.then(({ status, headers, text, cutBy }) => {
      if (isAborted) return;
      const raw = Object.entries(headers).flat();
      handler.onHeaders!(
        status,
        raw.map((each) => Buffer.from(each)),
        () => undefined,
        '',
      );
      const piece = Buffer.from(text);
      handler.onData!(piece);
      piece.fill(0);
      if (cutBy) fail(cutBy);
      else if (!isAborted) handler.onComplete!([]);
    }, fail);
    return true;
  };
  return { dispatch, destroy: () => Promise.resolve() } as unknown as Dispatcher;
}

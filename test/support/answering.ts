import type { Dispatcher } from 'undici';

/** What is answered. */
export interface Given {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
  /** What it ends with, if not well. */
  readonly cutBy?: Error;
}

/** A dispatcher without a network: as much of one as an exchange takes. */
export function answering(
  answer: (asked: Dispatcher.DispatchOptions, isAborted: () => boolean) => Promise<Given>,
): Dispatcher {
  const dispatch: Dispatcher['dispatch'] = (asked, handler) => {
    let isAborted = false;
    const controller = {
      abort: () => void (isAborted = true),
    } as unknown as Dispatcher.DispatchController;
    handler.onRequestStart!(controller, null);
    answer(asked, () => isAborted).then(
      ({ status, headers, text, cutBy }) => {
        handler.onResponseStart!(controller, status, headers);
        handler.onResponseData!(controller, Buffer.from(text));
        if (cutBy) handler.onResponseError!(controller, cutBy);
        else handler.onResponseEnd!(controller, {});
      },
      (error: Error) => handler.onResponseError!(controller, error),
    );
    return true;
  };
  return { dispatch, destroy: () => Promise.resolve() } as unknown as Dispatcher;
}

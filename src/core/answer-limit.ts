import type { Dispatcher } from 'undici';
import { passingHandler } from './passing-handler.ts';

/** An answer was not complete in time. It has the name by which `isTimeout` knows time-outs. */
class AnswerTimeout extends Error {
  override readonly name = 'TimeoutError';

  constructor(limitMs: number) {
    super(`the answer was not complete after ${limitMs / 1_000} s`);
  }
}

/**
 * A dispatcher that limits the time from when a request is written to the last byte of its answer. undici limits only the time
 * until the headers and between two parts of the body, so an answer that trickles, or interim answers (1xx) without end, would be
 * waited for without limit.
 */
export function answerLimit(dispatcher: Dispatcher, limitMs: number): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => {
    const passing = passingHandler(handler);
    let timer: NodeJS.Timeout | undefined;
    return dispatch(options, {
      ...passing,
      onRequestStart: (controller, context) => {
        clearTimeout(timer); // a request may be written once more, on another connection
        timer = setTimeout(() => controller.abort(new AnswerTimeout(limitMs)), limitMs);
        passing.onRequestStart(controller, context);
      },
      onResponseEnd: (controller, trailers) => {
        clearTimeout(timer);
        passing.onResponseEnd(controller, trailers);
      },
      onResponseError: (controller, error) => {
        clearTimeout(timer);
        passing.onResponseError(controller, error);
      },
    });
  });
}

// Interceptors that wrap undici's dispatchers: a limit of the time until an answer is complete, and a check at the moment when a request is
// written.

import type { Dispatcher } from 'undici';
import { CellarstreamError } from './errors.ts';

/**
 * A handler that passes everything on, for interceptors that replace some of its callbacks. undici's `DecoratorHandler` fails on
 * answers that begin with an interim one, such as 103 Early Hints: it allows one `onResponseStart` for each request (7.30).
 */
export function passingHandler(handler: Dispatcher.DispatchHandler) {
  return {
    onRequestStart: (...args) => handler.onRequestStart?.(...args),
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  } satisfies Dispatcher.DispatchHandler;
}

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

/**
 * A dispatcher that writes a request to its socket only while it may be sent. When it was begun says nothing: a connection may be
 * made for long, and the process may stand still meanwhile.
 *
 * A request that may not is an error, `LEASE_OVER`, and never leaves.
 */
export function leased(dispatcher: Dispatcher, mayBeSent: () => boolean): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => {
    const passing = passingHandler(handler);
    return dispatch(options, {
      ...passing,
      // Called as it is about to be written.
      onRequestStart: (controller, context) => {
        if (!mayBeSent()) {
          const message = 'the lease was over before this request was sent, so it was not sent';
          throw new CellarstreamError('LEASE_OVER', message);
        }
        passing.onRequestStart(controller, context);
      },
    });
  });
}

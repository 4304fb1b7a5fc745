// Interceptors for undici's dispatchers: one limits the time until a response is complete, another sends requests only under a valid lease.

import type { Dispatcher } from 'undici';
import { CellarstreamError } from './errors.ts';

/**
 * Returns a handler that forwards all callbacks, as the base for interceptors that replace some of them. undici's `DecoratorHandler` (7.30)
 * can't be used: it fails on interim responses such as 103 Early Hints.
 */
export function forwardingHandler(handler: Dispatcher.DispatchHandler) {
  return {
    onRequestStart: (...args) => handler.onRequestStart?.(...args),
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  } satisfies Dispatcher.DispatchHandler;
}

/** Returns the error for a response that was not complete in time. `isTimeout` recognizes it by its name. */
function responseTimeout(limitMs: number): Error {
  const error = new Error(
    `the response was not complete ${limitMs / 1_000} s after the request was sent (a fixed limit): the server or the network is too slow`,
  );
  return Object.assign(error, { name: 'TimeoutError' });
}

/**
 * Wraps a dispatcher so that the time from writing a request to the last byte of its response is limited. undici limits only the wait for
 * the headers and for each part of the body.
 */
export function limitResponseTime(dispatcher: Dispatcher, limitMs: number): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => {
    const passing = forwardingHandler(handler);
    let timer: NodeJS.Timeout | undefined;
    return dispatch(options, {
      ...passing,
      onRequestStart: (controller, context) => {
        clearTimeout(timer); // a request may be written again, on another connection
        timer = setTimeout(() => controller.abort(responseTimeout(limitMs)), limitMs);
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
 * Wraps a dispatcher so that a request is sent only if `mayBeSent` returns true right before it is written to its socket. Otherwise the
 * request fails with `LEASE_OVER`.
 */
export function leased(dispatcher: Dispatcher, mayBeSent: () => boolean): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => {
    const passing = forwardingHandler(handler);
    return dispatch(options, {
      ...passing,
      // undici calls it right before it writes the request. An earlier check would not suffice: connecting may take long, and the process
      // may be paused in between.
      onRequestStart: (controller, context) => {
        if (!mayBeSent()) {
          const message = 'the lease expired before this request was sent, so it was not sent';
          throw new CellarstreamError('LEASE_OVER', message);
        }
        passing.onRequestStart(controller, context);
      },
    });
  });
}

import type { Dispatcher } from 'undici';

/**
 * A handler that passes everything on, for interceptors that replace some of its callbacks. undici's `DecoratorHandler` fails on
 * answers that begin with an interim one, such as 103 Early Hints: it allows one `onResponseStart` for each request (7.30).
 */
export function passingHandler(
  handler: Dispatcher.DispatchHandler,
): Required<
  Pick<
    Dispatcher.DispatchHandler,
    | 'onRequestStart'
    | 'onRequestUpgrade'
    | 'onResponseStart'
    | 'onResponseData'
    | 'onResponseEnd'
    | 'onResponseError'
  >
> {
  return {
    onRequestStart: (...args) => handler.onRequestStart?.(...args),
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  };
}

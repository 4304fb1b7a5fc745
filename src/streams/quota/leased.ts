import type { Dispatcher } from 'undici';
import { CellarstreamError } from '../../core/errors.ts';
import { passingHandler } from '../../core/passing-handler.ts';

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
        if (!mayBeSent()) throw over();
        passing.onRequestStart(controller, context);
      },
    });
  });
}

function over(): CellarstreamError {
  return new CellarstreamError(
    'LEASE_OVER',
    'the lease was over before this request was sent, so it was not sent',
  );
}

import type { LineLogger } from '../observe/log.ts';

/** Returns a callback that logs errors of the HTTP endpoints and of their hooks. */
export function logOperations(logger: LineLogger): (error: unknown) => void {
  return (error) =>
    logger.error(
      { event: 'operations', err: error },
      'an HTTP endpoint or a hook failed; the service continues',
    );
}

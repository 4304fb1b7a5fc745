import type { LineLogger } from '../observe/log.ts';

/** Told of what goes wrong in the operators' side of a service. */
export function logOperations(logger: LineLogger): (error: unknown) => void {
  return (error) =>
    logger.error(
      { event: 'operations', err: error },
      'an endpoint failed to answer; the service goes on',
    );
}

// Writes changes to a stream as lines of JSON.

import type { Writable } from 'node:stream';
import { concatMap, Observable } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { stringifyJson } from '../schemas/json/json.ts';
import type { Change } from '../streams/diff/change.ts';

/** Options of {@link consoleSink}. */
export interface ConsoleSinkOptions {
  /** Stream to which the lines are written. The stream is never ended. Default: standard output. */
  readonly stream?: Writable;
  /** Whether the lines contain the images `before` and `after`, which include personal data. Default true. */
  readonly images?: boolean;
}

/**
 * Writes each change as a line of JSON, and emits the change once the stream has accepted the line. A line has the members `key`, `op` and
 * `changed`; unless {@link ConsoleSinkOptions.images} is false, also `before` and `after`.
 *
 * Errors with the stream's error, for example when the other end of a pipe is closed.
 */
export function consoleSink(options: ConsoleSinkOptions = {}): MonoTypeOperatorFunction<Change> {
  const { stream = process.stdout, images = true } = options;
  return concatMap(
    (change) =>
      new Observable<Change>((subscriber) => {
        const { key, op, changed, before, after } = change;
        const line = { key, op, changed: [...changed], ...(images && { before, after }) };
        const ignore = () => undefined; // the callback gets the same error
        stream.once('error', ignore);
        stream.write(`${stringifyJson(line)}\n`, (error) => {
          if (error) return subscriber.error(error); // the stream emits `error` once, after this callback
          stream.off('error', ignore);
          subscriber.next(change);
          subscriber.complete();
        });
      }),
  );
}

// Writes changes as lines of JSON.

import type { Writable } from 'node:stream';
import { concatMap, Observable } from 'rxjs';
import type { MonoTypeOperatorFunction } from 'rxjs';
import { stringifyJson } from '../schemas/json/json.ts';
import type { Change } from '../streams/diff/change.ts';

/** Where {@link consoleSink} writes, and how much. */
export interface ConsoleSinkOptions {
  /** Where the lines go; never ended. Default standard output. */
  readonly stream?: Writable;
  /** Whether `before` and `after` are in the line: they hold personal fields. Default true. */
  readonly images?: boolean;
}

/**
 * Writes each change as a line of JSON, `{"key","op","changed","before","after"}`, and passes it on
 * once the stream has taken it. One line at a time: whoever requests pages only after their changes
 * have come through here holds no more in memory than those.
 *
 * Errors with the stream's error, as when the other end of a pipe is closed.
 */
export function consoleSink(options: ConsoleSinkOptions = {}): MonoTypeOperatorFunction<Change> {
  const { stream = process.stdout, images = true } = options;
  return concatMap(
    (change) =>
      new Observable<Change>((subscriber) => {
        const { key, op, changed, before, after } = change;
        const line = { key, op, changed: [...changed], ...(images && { before, after }) };
        const ignore = () => undefined; // the callback is told of it too
        stream.once('error', ignore);
        stream.write(`${stringifyJson(line)}\n`, (error) => {
          if (error) return subscriber.error(error); // its event comes after this, and once
          stream.off('error', ignore);
          subscriber.next(change);
          subscriber.complete();
        });
      }),
  );
}

import { catchError, map, of, switchMap, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import { boundedMap } from '../../core/bounded-map.ts';
import type { BoundedMap } from '../../core/bounded-map.ts';
import { CellarstreamError, isResourceError } from '../../core/errors.ts';
import type { ListDescription } from '../../description/description.ts';
import type { Span } from '../../streams/http/logical-clock.ts';
import { recordsOf } from '../../streams/decode/response.ts';
import type { Answer, ListRequest } from '../../streams/decode/response.ts';
import type { Limit } from '../../streams/quota/token-bucket.ts';
import { PageRecord } from '../../streams/records/page-record.ts';
import type { PageRecords } from '../../streams/records/page-records.ts';

export interface SingleRecordsOptions {
  /** How to request a single record from the API; undefined if the API does not offer this for the list. */
  readonly one: ListDescription['one'];
  readonly request: ListRequest;
  /**
   * Closes a read on the list's logical clock. Called for each response that {@link SingleRecords.request} does not emit. The subscriber of
   * `request` has to close the reads of the emitted responses.
   */
  readonly settle: (span: Span) => void;
  /** Called if the API refuses the request for a single record, or if the record in its response is not JSON. */
  readonly onRefused: (error: unknown) => void;
}

/**
 * Requests single records of a list, and decides whether a response without a record proves that the record does not exist. A gateway may
 * send a 404 too, and so may a server that does not accept a character of the key, such as an encoded `/`. A server that searches for the
 * key may read its special characters in another way, such as `a,b` as two keys, and find nothing.
 *
 * Therefore a 404, or an empty response for a key with special characters, counts only if the next request returns a record that is known to
 * exist and whose key has the same special characters in similar places ({@link specialCharacters}).
 */
export class SingleRecords {
  readonly #options: SingleRecordsOptions;
  /**
   * Witnesses: keys of existing records, one for each result of {@link specialCharacters}. A request for a witness verifies a response
   * without a record for another key with the same result.
   */
  readonly #witnesses: BoundedMap<string, string> = boundedMap(MAX_WITNESSES);

  constructor(options: SingleRecordsOptions) {
    this.#options = options;
  }

  /** Whether a record can be requested by this key: the API has such a request for the list, and accepts this key in it. */
  canRequest(key: string): boolean {
    const { one } = this.#options;
    // `.` and `..` can't be a segment of a path, not even encoded: the address would be that of the folder or its parent.
    return (
      one !== undefined && key !== '.' && key !== '..' && (!one.digitsOnly || /^\d+$/.test(key))
    );
  }

  /**
   * Requests a record by its key, once `limit` allows it. Emits the response (empty if the record does not exist), or undefined if it is
   * unknown whether the record exists.
   */
  request(key: string, limit: Limit): Observable<Answer | undefined> {
    const { request, onRefused } = this.#options;
    return request({ key }, limit).pipe(
      switchMap((answer) => this.#confirmed(answer, key, limit)),
      catchError((error: unknown) => {
        if (!isResourceError(error)) return throwError(() => error);
        onRefused(error);
        return of(undefined);
      }),
    );
  }

  /**
   * Remembers keys of existing records, with which responses without a record are verified. To be called with the records of each response.
   */
  observe(records: PageRecords): void {
    const { one } = this.#options;
    if (one === undefined) return;
    if (one.digitsOnly) return this.#observeLast(records);
    for (const part of records.parts) {
      if (!(part instanceof PageRecord))
        part.run.eachKey((...key) => this.#observeKey(textOf(...key)));
      else if (part.key !== undefined) this.#observeKey(part.key);
    }
  }

  #observeKey(key: string): void {
    if (this.canRequest(key)) this.#witnesses.set(specialCharacters(key), key);
  }

  #observeLast(records: PageRecords): void {
    for (let place = records.length - 1; place >= 0; place -= 1) {
      const key = records.at(place)?.key;
      if (key !== undefined && this.canRequest(key)) return this.#observeKey(key);
    }
  }

  #confirmed(answer: Answer, key: string, limit: Limit): Observable<Answer | undefined> {
    const { settle, onRefused } = this.#options;
    const { length, isReadable } = recordsOf(answer);
    if (!isReadable) {
      settle(answer.span);
      onRefused(
        new CellarstreamError(
          'API_ANSWER',
          'the API answered a request for a single record with a record that is not JSON',
        ),
      );
      return of(undefined);
    }
    const isCertain = length > 0 || (!answer.notFound && specialCharacters(key) === '');
    if (isCertain) return of(answer);
    return this.#findsWitness(key, limit).pipe(
      map((isFound) => {
        if (!isFound) settle(answer.span);
        return isFound ? answer : undefined;
      }),
    );
  }

  /**
   * Requests a witness for `key`: another record that is known to exist. Emits whether the API returns the witness; false if no witness is
   * known.
   */
  #findsWitness(key: string, limit: Limit): Observable<boolean> {
    const { request, settle, onRefused } = this.#options;
    const witness = this.#witnesses.get(specialCharacters(key));
    if (witness === undefined || witness === key) return of(false);
    return request({ key: witness }, limit).pipe(
      map((found) => {
        settle(found.span);
        const records = recordsOf(found).all();
        const isFound = records.some((record) => record.key === witness);
        // A server that drops a part of each key may return record `1` for the key `1.2`, and send a 404 for an existing record `3.4`.
        if (!isFound && records.length > 0) onRefused(otherRecordError());
        return isFound;
      }),
      // If this request is refused, the response for `key` stays unverified.
      catchError((error: unknown) =>
        isResourceError(error) ? of(false) : throwError(() => error),
      ),
    );
  }
}

/**
 * Maximum number of witnesses (existing records whose requests verify a response without a record). If it is too small, some deletions
 * remain unverified.
 */
const MAX_WITNESSES = 100;

function otherRecordError(): CellarstreamError {
  return new CellarstreamError(
    'API_ANSWER',
    'the API answered a request for a single record with a record of another key, so its responses without a record prove no deletion: check `one` and `key` of the list in the description',
  );
}

/**
 * Returns the sequences of special characters in a key (ASCII letters, digits, `-` and `_` are not special): the one at the beginning of the
 * key, the one at its end, and those between, each once and sorted; joined by `a`, which is in none of them. Empty if there are none.
 *
 * Their places matter because a proxy that decodes `%2F` may also merge `//` and resolve `/../`: it may find `a/b`, but not `/b` or `a//b`.
 * `%` and two hexadecimal digits count as `%%`, because some servers decode keys twice. If any character is not ASCII, `é` comes first.
 */
function specialCharacters(key: string): string {
  if (!/[^\w-]/.test(key)) return '';
  const ascii = key.replaceAll(/\P{ASCII}/gu, 'x');
  const [first, ...others] = ascii.replaceAll(/%[\da-f]{2}/gi, '%%').split(/[\w-]+/);
  const last = others.splice(-1);
  return [ascii === key ? '' : 'é', first, ...last, ...[...new Set(others)].sort()].join('a');
}

function textOf(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString();
}

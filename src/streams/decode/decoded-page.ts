// Decodes the body of a response into a page: element by element, yielding between steps, and around elements that are not JSON.

import { timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CLOSE_ARRAY, endOfValue, isDelimiter, skipSpace } from '../../schemas/json/json-bytes.ts';
import { jsonText, pageElements, textOfAnyBytes } from '../../schemas/json/json-bytes.ts';
import { parseJson, stringifyJson } from '../../schemas/json/json.ts';
import type { Elements } from '../../schemas/json/json-bytes.ts';
import { inSteps, waitFor } from '../flow/steps.ts';
import type { Steps } from '../flow/steps.ts';
import { Body } from '../http/body.ts';
import type { ListQuery, RawPage } from '../http/page-request.ts';
import { PageRecord, payloadDigest } from '../records/page-record.ts';
import { PageRecords } from '../records/page-records.ts';
import type { PagePart } from '../records/page-records.ts';
import type { ResponseLayout } from './response-layout.ts';
import type { DecodedPage } from './response.ts';
import type { Decoder } from './decoder.ts';

/** The parts of a response that are decoded. */
type Response = Pick<RawPage, 'body' | 'headers'>;

/**
 * Decodes a body into a page, element by element. The generator yields between steps (see {@link stepwise}).
 *
 * @param offset List offset of the request.
 * @returns The page. If the body is JSON but not a page, or reports an error: a text for an error message.
 * @throws SyntaxError if the body is not JSON; RangeError if it is nested too deeply.
 */
export function* decodedPage(
  { body, headers }: Response,
  layout: ResponseLayout,
  decode: Decoder,
  offset = 0,
): Generator<void, DecodedPage | string> {
  const parts = yield* pageElements(body.bytes, layout.path, (at) => decode(body, at));
  if (parts) {
    const rest = parseJson(parts.rest);
    if (layout.isError(rest, parts.elements.length)) return layout.misfit(rest);
    return layout.page(rest, headers, parts.elements, offset, body);
  }
  // The body has an unusual layout: parses it as a whole, serializes each element, and decodes that text.
  const whole = parseJson(jsonText(body.bytes));
  const data = layout.recordsIn(whole);
  if (!data || layout.isError(whole, data.length)) return layout.misfit(whole);
  const records = data.flatMap(
    (each) => decode(new Body(Buffer.from(stringifyJson(each))), 0).values,
  );
  return layout.page(whole, headers, records, offset);
}

/** Result of {@link pageAround}: the readable part of a page whose text is not valid JSON. */
export interface AroundPage {
  /** The page, with an unreadable record for each malformed element; undefined if the end of such an element could not be determined. */
  readonly page: DecodedPage | undefined;
  readonly texts: readonly Buffer[];
  /**
   * Index of the first element that is neither JSON nor a text known from earlier responses. If there is no such element: index of the last
   * element that is not JSON.
   */
  readonly place: number;
  /** Bytes of the response body from the start of the element at index `place` to the end. */
  readonly rest: Buffer;
}

/**
 * Decodes a page in which some elements are not JSON. These elements become unreadable records.
 *
 * Where such an element ends is a guess by brackets and quotes, which may be malformed as well. Therefore the page is accepted only if both
 * of these conditions are met:
 *
 * - Everything else in the response is JSON.
 * - The page has as many elements as were requested, or as are left in the list.
 *
 * @param texts Known texts of elements that are not JSON. If one of them matches, the end of the element is certain.
 * @returns The result, whose `page` is undefined if the page is not accepted. Undefined if every element is JSON: the error is elsewhere.
 */
export function* pageAround(
  { body: page, headers }: Response,
  { offset = 0, pageSize = Infinity }: ListQuery,
  layout: ResponseLayout,
  decode: Decoder,
  texts: UnreadableTexts,
): Generator<void, AroundPage | undefined> {
  const body = page.bytes;
  const found: Buffer[] = [];
  let blamed: { readonly place: number; readonly at: number } | undefined;
  let isKnown = true; // an element with a known text is blamed only if there is no other
  let next = 0;
  const blame = (suspect: NonNullable<typeof blamed>, known: boolean) => {
    if (isKnown) blamed = suspect;
    isKnown &&= known;
  };
  const parts = yield* pageElements(body, layout.path, (at) => {
    const place = next;
    const known = elementsAt(page, at, decode);
    if (known) {
      next += new PageRecords(known.values).length;
      const isCutOff = skipSpace(body, known.end) === body.length;
      // The body ends right after an element, so the following one counts as not JSON.
      if (isCutOff) blame({ place: next, at: body.length }, false);
      return known;
    }
    next += 1;
    const end = texts.endOf(body, at);
    const text = body.subarray(at, end);
    blame({ place, at }, texts.has(text));
    found.push(text);
    return { values: [PageRecord.unreadable(textOfAnyBytes(text), offset + place)], end };
  });
  const pageWith = (rest: string, data: readonly PagePart[]): DecodedPage | undefined => {
    try {
      return layout.page(parseJson(rest), headers, data, offset);
    } catch (error) {
      if (isNoJson(error)) return undefined;
      throw error;
    }
  };
  // A single record need not be an element of an array: the whole body counts as its text.
  if (!blamed)
    return layout.isRecord ? { page: undefined, texts: [], place: 0, rest: body } : undefined;
  const rest = body.subarray(blamed.at);
  const around = { texts: found, place: blamed.place, rest };
  const whole = parts && pageWith(parts.rest, parts.elements);
  if (whole && isCompletePage(whole, offset, pageSize)) return { ...around, page: whole };
  // In a page of one record, the end of the record is guessed in another way.
  const alone =
    pageSize === 1 && blamed.place === 0
      ? singleRecordIn(body, blamed.at, offset, pageWith)
      : undefined;
  return { ...around, page: undefined, ...alone };
}

/**
 * Decodes the record that begins at byte `at`, or the run (adjacent records that are recognized together) that begins there. Leaves out the
 * last record if other text than a delimiter follows it. Returns undefined if the first record is not JSON or is left out.
 */
function elementsAt(page: Body, at: number, decode: Decoder): Elements<PagePart> | undefined {
  const body = page.bytes;
  try {
    const elements = decode(page, at);
    const next = skipSpace(body, elements.end);
    if (next === body.length || isDelimiter(body[next])) return elements;
    // The last element is not followed by a delimiter, so its text continues: only those before it are returned.
    const before = new PageRecords(elements.values).all().slice(0, -1);
    const end = before.at(-1)?.bytes?.end;
    return end === undefined ? undefined : { values: before, end };
  } catch (error) {
    if (isNoJson(error)) return undefined;
    throw error;
  }
}

/**
 * Decodes a page whose only record, which begins at byte `at` of the body, is not JSON. The end of the record is guessed: it is the last
 * `]` with which the rest of the response is JSON. Returns undefined if none of the last {@link MAX_BRACKETS} fits.
 */
function singleRecordIn(
  body: Buffer,
  at: number,
  offset: number,
  pageWith: (rest: string, data: readonly PagePart[]) => DecodedPage | undefined,
): Pick<AroundPage, 'page' | 'texts'> | undefined {
  let end = body.length;
  for (let tries = 0; tries < MAX_BRACKETS; tries++) {
    end = body.lastIndexOf(CLOSE_ARRAY, end - 1);
    if (end <= at) return undefined;
    const text = Buffer.from(body.toString('latin1', at, end).trimEnd(), 'latin1');
    const record = PageRecord.unreadable(textOfAnyBytes(text), offset);
    const rest = body.toString('utf8', 0, at) + body.toString('utf8', end);
    const page = pageWith(rest, [record]);
    if (page) return { page, texts: [text] };
  }
  return undefined;
}

/**
 * Maximum number of `]`, from the end of the body, that are tried as the end of the array of records. If it is too small, the end is not
 * found in a response with many other arrays after the records. If it is too large, a large body costs CPU.
 */
const MAX_BRACKETS = 20;

function isCompletePage(
  { records, total }: DecodedPage,
  offset: number,
  pageSize: number,
): boolean {
  const { length } = records;
  return length === pageSize || (length < pageSize && length === (total ?? NaN) - offset);
}

/** Whether an error means that a text is not JSON (SyntaxError) or is nested too deeply (RangeError). */
export function isNoJson(error: unknown): error is Error {
  return error instanceof SyntaxError || error instanceof RangeError;
}

/**
 * Maximum number of texts in {@link UnreadableTexts}, whose digests take about 100 bytes each. At the limit all texts are forgotten, and
 * each costs a few requests when it is received again.
 */
const MAX_TEXTS = 10_000;

/**
 * Texts that are not JSON, and that servers sent in place of a record, as a set of digests. All requests of a list share the set, so a page
 * is not requested again because of a text in the set.
 */
export class UnreadableTexts {
  readonly #digests = new Map<number, Set<string>>();
  #size = 0;

  has(text: Buffer): boolean {
    return this.#digests.get(text.length)?.has(payloadDigest(text)) ?? false;
  }

  add(text: Buffer): void {
    if (this.has(text)) return;
    if (this.#size === MAX_TEXTS) {
      this.#digests.clear();
      this.#size = 0;
    }
    this.#size += 1;
    const digests = this.#digests.get(text.length) ?? new Set();
    this.#digests.set(text.length, digests.add(payloadDigest(text)));
  }

  /**
   * Returns the index of the byte after the element that begins at `at`. If a text of the set stands there, it is the whole element.
   * Otherwise the end is found by counting brackets and quotes.
   */
  endOf(page: Buffer, at: number): number {
    for (const length of this.#digests.keys()) {
      const end = at + length;
      if (!isDelimiter(page[skipSpace(page, end)])) continue;
      if (this.has(page.subarray(at, end))) return end;
    }
    return endOfValue(page, at);
  }
}

/** Runs a generator, returns to the event loop at each `yield`, and emits the generator's return value. */
export function stepwise<T>(
  work: () => Generator<void, T>,
  scheduler: SchedulerLike,
): Observable<T> {
  return inSteps(function* (): Steps<T> {
    const steps = work();
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      yield* waitFor(timer(0, scheduler));
    }
  });
}

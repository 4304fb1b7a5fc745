import {
  CLOSE_ARRAY,
  isDelimiter,
  skipSpace,
  textOfAnyBytes,
  pageElements,
} from '../../schemas/json/json-bytes.ts';
import { parseJson } from '../../schemas/json/json.ts';
import type { Elements } from '../../schemas/json/json-bytes.ts';
import { pageOf } from './answer.ts';
import type { Page } from './answer.ts';
import type { Body } from '../http/body.ts';
import type { ListQuery } from '../http/list-query.ts';
import type { Decoder } from './decoder.ts';
import { PageRecord } from '../records/page-record.ts';
import { PageRecords } from '../records/page-records.ts';
import type { PagePart } from '../records/page-records.ts';
import type { UnreadableTexts } from './unreadable-texts.ts';

/** What can be made out of a page that is no JSON. */
export interface AroundPage {
  /** All of it but some elements; undefined where it can't be told where one of them ends. */
  readonly page: Page | undefined;
  /** The texts of those elements. */
  readonly texts: readonly Buffer[];
  /** The place in the page of the first whose end is a guess: what stands before it is right. */
  readonly place: number;
  /** From where that begins to the end of the page. */
  readonly rest: Buffer;
}

/** What {@link pageAround} needs. */
export interface PageAroundOptions {
  readonly query: ListQuery;
  readonly decode: Decoder;
  readonly texts: UnreadableTexts;
}

/**
 * Reads a page around elements that are no JSON. JSON is read from front to back: all up to the first of
 * them is what it seems, and so is where that begins. Where it ends is a guess, by brackets and quotes, which may be
 * what is wrong with it, and then it may have swallowed records. So the guess counts only if all else is
 * JSON, and as many elements come as were asked for, or as are left in the list.
 *
 * @returns undefined where no element is to blame.
 */
export function* pageAround(
  page: Body,
  { query, decode, texts }: PageAroundOptions,
): Generator<void, AroundPage | undefined> {
  const body = page.bytes;
  const { offset = 0, pageSize = Infinity } = query;
  const found: Buffer[] = [];
  let blamed: { readonly place: number; readonly at: number } | undefined;
  let isKnown = true; // what is known to be none is not to blame, if there is another one
  let next = 0;
  const blame = (suspect: NonNullable<typeof blamed>, known: boolean) => {
    if (isKnown) blamed = suspect;
    isKnown &&= known;
  };
  const parts = yield* pageElements(body, (at) => {
    const place = next;
    const known = elementsAt(page, at, decode);
    if (known) {
      next += new PageRecords(known.values).length;
      const isCutOff = skipSpace(body, known.end) === body.length;
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
  if (!blamed) return undefined;
  const rest = body.subarray(blamed.at);
  const around = { texts: found, place: blamed.place, rest };
  const whole = parts && pageWith(parts.rest, parts.elements, offset);
  if (whole && isWhole(whole, offset, pageSize)) return { ...around, page: whole };
  const alone = pageSize === 1 && blamed.place === 0 ? loneIn(body, blamed.at, offset) : undefined;
  return alone ? { ...around, ...alone } : { ...around, page: undefined };
}

/** What is JSON from there on, to an end of elements; undefined where the first is none. */
function elementsAt(page: Body, at: number, decode: Decoder): Elements<PagePart> | undefined {
  const body = page.bytes;
  try {
    const elements = decode(page, at);
    const next = skipSpace(body, elements.end);
    if (next === body.length || isDelimiter(body[next])) return elements;
    // The last one goes on where it should end.
    const before = new PageRecords(elements.values).all().slice(0, -1);
    const end = before.at(-1)?.bytes?.end;
    return end === undefined ? undefined : { values: before, end };
  } catch (error) {
    if (isNoJson(error)) return undefined;
    throw error;
  }
}

/** A page of one record, whose text is all between the brackets; undefined where no closing one is found. */
function loneIn(
  body: Buffer,
  at: number,
  offset: number,
): Pick<AroundPage, 'page' | 'texts'> | undefined {
  let end = body.length;
  for (let tries = 0; tries < MAX_BRACKETS; tries++) {
    end = body.lastIndexOf(CLOSE_ARRAY, end - 1);
    if (end <= at) return undefined;
    const text = Buffer.from(body.toString('latin1', at, end).trimEnd(), 'latin1');
    const record = PageRecord.unreadable(textOfAnyBytes(text), offset);
    const rest = body.toString('utf8', 0, at) + body.toString('utf8', end);
    const page = pageWith(rest, [record], offset);
    if (page) return { page, texts: [text] };
  }
  return undefined;
}

/** Brackets that are tried from behind: few arrays stand there, outside the list of records. */
const MAX_BRACKETS = 20;

/** Whether as many came as were asked for, or as are left in the list. */
function isWhole({ records, pagination }: Page, offset: number, pageSize: number): boolean {
  const { length } = records;
  return (
    length === pageSize ||
    (length < pageSize && length === (pagination.total_records ?? NaN) - offset)
  );
}

function pageWith(rest: string, data: readonly PagePart[], offset: number): Page | undefined {
  try {
    return pageOf(parseJson(rest), data, { offset });
  } catch (error) {
    if (isNoJson(error)) return undefined;
    throw error;
  }
}

/** What is nested too deep is a RangeError. Anything else is no fault of the answer. */
export function isNoJson(error: unknown): error is Error {
  return error instanceof SyntaxError || error instanceof RangeError;
}

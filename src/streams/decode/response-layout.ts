// Reads the responses of a list by the places in its description: the records, their number, whether the list continues, and errors.

import { totalRequestOf } from '../../description/description.ts';
import type { ListDescription } from '../../description/description.ts';
import {
  isJsonObject,
  JsonNumber,
  pointerNames,
  pointerStep,
  valueAt,
} from '../../schemas/json/json.ts';
import type { JsonObject, JsonValue } from '../../schemas/json/json.ts';
import type { Body } from '../http/body.ts';
import type { HttpResponse } from '../http/http.ts';
import { PageRecords } from '../records/page-records.ts';
import type { PagePart } from '../records/page-records.ts';
import type { DecodedPage } from './response.ts';

type Headers = HttpResponse['headers'];
type Place = NonNullable<ListDescription['more']>;

/** Reads the responses of one list, as the list's description says. */
export class ResponseLayout {
  /** Names of the members that lead from the body to the array of records; empty if the body itself is the array. */
  readonly path: readonly string[];
  /** Whether the body may have a single record, an object, in place of the array of records. */
  readonly isRecord: boolean;
  /** Layout of the list's responses to requests for a single record. */
  readonly single: ResponseLayout;
  readonly #list: ListDescription;
  readonly #total: Place | undefined;
  readonly #more: Place | undefined;
  /** Place of the cursor or address of the next page; undefined if the description does not say where it is. */
  readonly #next: Place | undefined;
  /** Paths in a response's JSON. A body that has a value at one of them is a page of the list, even if it has no records. */
  readonly #signs: readonly (readonly string[])[];

  /** @param isRecord Whether the body may have a single record in place of the array of records. Default false. */
  constructor(list: ListDescription, isRecord = false) {
    const { records, total, more, next, one } = list;
    this.#list = list;
    this.path = pointerNames(records);
    this.isRecord = isRecord;
    const isLink = typeof more === 'object' && 'link' in more;
    this.#total = typeof total === 'object' && 'path' in total ? undefined : total;
    this.#more = isLink ? undefined : more;
    this.#next = next ?? (isLink ? more : undefined);
    this.#signs = [this.#total, more, next].flatMap((place) =>
      typeof place === 'string' ? [branch(pointerNames(place), this.path)] : [],
    );
    const isElsewhere = one && (one.path !== list.path || one.record !== records);
    this.single =
      isElsewhere && !isRecord
        ? new ResponseLayout({ ...list, ...NO_PLACES, records: one.record }, true)
        : this;
  }

  /** Returns the records in a parsed body: an empty array if it is the page of an empty list, undefined if it is not a page. */
  recordsIn(body: JsonValue): readonly JsonValue[] | undefined {
    const found = valueAt(body, this.path);
    if (Array.isArray(found)) return found;
    if (this.isRecord && isJsonObject(found)) return [found];
    return found === null || (found === undefined && this.#hasSign(body)) ? [] : undefined;
  }

  /** Returns the total from the parsed response to a request for the total alone; undefined if it is missing or not plausible. */
  totalIn(body: JsonValue): number | undefined {
    return countIn(valueAt(body, pointerNames(totalRequestOf(this.#list)?.at ?? '')));
  }

  /**
   * Whether a body reports an error: some APIs answer an expired token with status 200, an error, and an empty list. If the description has
   * `ok` (a flag that means success), the flag decides. Otherwise a body without records reports an error if it has a usual sign of one,
   * such as a member `error`.
   *
   * @param count Number of records in the body.
   */
  isError(body: JsonValue, count: number): boolean {
    const { ok } = this.#list;
    if (ok !== undefined) return flagIn(valueIn(body, {}, ok)) !== true;
    if (count > 0 || !isJsonObject(body)) return false;
    // A `message` is no sign of an error if the body has members that the description names for the list.
    return (
      isErrorBody(body) ||
      (isPresent(body.message) && body.success !== true && !this.#hasSign(body))
    );
  }

  /**
   * Creates a page from its records (`parts`) and the rest of the response.
   *
   * @param body The response body as parsed JSON. Its array of records may be empty, because the records are taken from `parts`.
   * @param offset List offset of the request.
   * @param memory The raw response body, if the records refer to its bytes. It is released when the records are settled.
   */
  page(
    body: JsonValue,
    headers: Headers,
    parts: readonly PagePart[],
    offset: number,
    memory?: Body,
  ): DecodedPage {
    const records = new PageRecords(parts, memory);
    const { length } = records;
    const { next, reported } = this.#list;
    const total = countIn(valueIn(body, headers, this.#total));
    const at = valueIn(body, headers, reported?.offset);
    const limit = valueIn(body, headers, reported?.limit);
    const reached = (countIn(at) ?? offset) + length;
    const isMore = length > 0 && (total === undefined || reached < total);
    return {
      records,
      total,
      hasNext: this.#hasNext(body, headers) ?? isMore,
      ...(next !== undefined && { next: cursorIn(valueIn(body, headers, next)) }),
      reported: {
        ...(isCount(at) && { offset: at }),
        ...(isCount(limit) && { pageSize: limit }),
      },
    };
  }

  /** Returns why a body is not a page, with the names and kinds of its members: never values, which may be personal. */
  misfit(body: JsonValue): string {
    const { name, records } = this.#list;
    let [at, place] = [body, ''];
    for (const step of this.path.slice(0, -1)) {
      const inner = valueAt(at, [step]);
      if (!isJsonObject(inner)) break;
      [at, place] = [inner, place + pointerStep(step)];
    }
    const problem = Array.isArray(valueAt(body, this.path))
      ? 'the response reports an error and'
      : `no array at ${records || 'the root'}; the response`;
    return `${name}: ${problem} ${membersOf(at, place)}`;
  }

  /**
   * Whether another page follows, as the response says; undefined if it does not say. False for a list whose description states that it has
   * no pages.
   */
  #hasNext(body: JsonValue, headers: Headers): boolean | undefined {
    if (this.#list.paging === 'none') return false;
    const more = flagIn(valueIn(body, headers, this.#more));
    if (more !== undefined || this.#next === undefined) return more;
    return isPresent(valueIn(body, headers, this.#next));
  }

  #hasSign(body: JsonValue): boolean {
    return this.#signs.some((path) => path.length > 0 && valueAt(body, path) !== undefined);
  }
}

/** Replaces the paging fields of a list's description when a single record is read: its response has no total and no next page. */
const NO_PLACES = {
  ...{ total: undefined, more: undefined, next: undefined, reported: undefined },
  paging: 'none',
} as const;

/**
 * Returns the names of `path` up to and including the first one that differs from `records`: `['meta']` for the path `['meta', 'total']`
 * if `records` is `['data']`. Empty if no name differs.
 */
function branch(path: readonly string[], records: readonly string[]): readonly string[] {
  return path.slice(0, path.findIndex((name, depth) => name !== records[depth]) + 1);
}

/** Returns the value at a place in the body or the headers of a response; undefined if there is none, but `''` for a missing header. */
function valueIn(body: JsonValue, headers: Headers, place?: Place): JsonValue | undefined {
  if (place === undefined) return undefined;
  if (typeof place === 'string') return valueAt(body, pointerNames(place));
  if ('link' in place) return linkTarget(textOf(headers.link), place.link);
  return textOf(headers[place.header.toLowerCase()]);
}

function textOf(header: Headers[string]): string {
  return [header].flat().join(', ');
}

/** Returns the address that a `Link` header (RFC 8288) gives for a relation, such as `next`; undefined if it gives none. */
function linkTarget(header: string, relation: string): string | undefined {
  for (const [, address, parameters = ''] of header.matchAll(/<([^>]*)>([^<]*)/g)) {
    const [, quoted, plain = ''] =
      /;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))/i.exec(parameters) ?? [];
    const relations = (quoted ?? plain).toLowerCase().split(/\s+/);
    if (relations.includes(relation.toLowerCase())) return address;
  }
  return undefined;
}

/** Returns a cursor or an address, which may be a string or a number, as a text; undefined for an empty string and for any other value. */
function cursorIn(value: JsonValue | undefined): string | undefined {
  const isNumber = typeof value === 'number' || value instanceof JsonNumber;
  const isCursor = isNumber || (typeof value === 'string' && value !== '');
  return isCursor ? String(value) : undefined;
}

function isCount(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** Returns a number of records, which some servers send as a string; undefined if the value is not a whole number of 0 or more. */
function countIn(value: JsonValue | undefined): number | undefined {
  const isDigits = typeof value === 'string' && /^\s*\d{1,15}\s*$/.test(value);
  const count = isDigits ? Number(value) : value;
  return isCount(count) ? count : undefined;
}

const FLAGS: Readonly<Record<string, boolean>> = {
  true: true,
  false: false,
  '1': true,
  '0': false,
};

/** Returns a boolean, which some servers send as a string or a number; undefined for any other value. */
function flagIn(value: JsonValue | undefined): boolean | undefined {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'number' && typeof value !== 'string') return undefined;
  return FLAGS[String(value).trim().toLowerCase()];
}

function isErrorBody(body: JsonObject): boolean {
  const { error, errors, success, ok } = body;
  if (isPresent(error) || isPresent(errors) || success === false || ok === false) return true;
  return [body.status, body.code, body.statusCode].some(isFailureCode);
}

function isFailureCode(value: JsonValue | undefined): boolean {
  if (typeof value === 'string') return /^(error|fail(ed|ure)?|[45]\d\d)$/i.test(value);
  return typeof value === 'number' && value >= 400 && value < 600;
}

function isPresent(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.length > 0;
  return value !== undefined && value !== null && value !== false && value !== '';
}

/** Maximum number of members of a JSON object that an error message names. If it is too large, messages are long. */
const MAX_NAMED = 8;
/** Form of the member names that an error message may quote. A name of another form may be data, such as the key of a record. */
const FIELD_NAME = /^[a-z_][\w-]{0,39}$/i;

/** Describes the value at JSON Pointer `place` by names and kinds of its members, such as `has /data (object) and /ok`. */
function membersOf(value: JsonValue, place: string): string {
  if (!isJsonObject(value))
    return `is ${Array.isArray(value) ? 'an ' : ''}${kindOf(value) ?? 'a single value'}`;
  const all = Object.keys(value);
  const named = all.filter((name) => FIELD_NAME.test(name)).slice(0, MAX_NAMED);
  const texts = named.map((name) => {
    const kind = kindOf(value[name]!);
    return `${place}${pointerStep(name)}${kind === undefined ? '' : ` (${kind})`}`;
  });
  const others = all.length - named.length;
  if (others > 0)
    texts.push(
      `${others} ${others === 1 ? 'member' : 'members'}${named.length > 0 ? ' more' : ''}`,
    );
  return texts.length === 0 ? 'has no members' : `has ${new Intl.ListFormat('en').format(texts)}`;
}

/** Returns a word for the value in error messages: `array of 3`, `object` or `null`; undefined for a string, number or boolean. */
function kindOf(value: JsonValue): string | undefined {
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (value === null) return 'null';
  return isJsonObject(value) ? 'object' : undefined;
}

// Types of the content of a description file: an API and its lists.

import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import { pointerNames } from '../schemas/json/json.ts';
import type { DescriptionFile, ListFile } from './format.ts';
import { variablesIn } from './template.ts';
import type { Json, Parameters } from './template.ts';
import type { TimeFormat } from './time-format.ts';

/** Description of an API: how to log in, its quota and its lists. */
export interface ApiDescription {
  /** Name of the API; the default of `TOPIC_PREFIX`. */
  readonly api: string;
  /** Namespace of the Avro schemas. */
  readonly namespace: string;
  /** Names of the description's parameters. Their values come from the settings `API_PARAM_<NAME>`. */
  readonly parameters: readonly string[];
  /** Headers of every request. */
  readonly headers: Parameters;
  /** Notation of dates in requests and of timestamps in records. */
  readonly times: TimeFormat;
  /** Meanings of HTTP statuses for this API, by status. They replace the built-in meanings. */
  readonly errors: NonNullable<DescriptionFile['errors']>;
  readonly auth: DescriptionFile['auth'];
  readonly quota: DescriptionFile['quota'];
  /**
   * Maps each setting that the description uses to the error message for a missing value, such as `shop.yaml:4:17 auth.bearer: {api_key}
   * needs API_KEY or API_KEY_FILE`.
   */
  readonly settingUses: Readonly<Record<string, string>>;
  /** Lists of the API, in the order of the description file. */
  readonly lists: readonly ListDescription[];
  /** Result of `check --measure` for this description; undefined if the description file does not contain one. */
  readonly measured?: DescriptionFile['measured'];
}

/** A login with credentials, whose response contains a token. */
export type LoginDescription = Extract<ApiDescription['auth'], { login: unknown }>['login'];

/**
 * Smallest allowed page size, in records, of a list whose pages can be requested directly. Consecutive pages overlap by up to 20 records,
 * so a smaller page might contain no new record.
 */
export const MIN_PAGE_SIZE = 21;

/** How to request access tokens by OAuth 2: the token endpoint, the grant type and the client's credentials. */
export type OAuth2Description = Extract<ApiDescription['auth'], { oauth2: unknown }>['oauth2'];

/** Name of a list. */
export type Resource = string;

/** One list of an API. The inherited properties are those of the description file. */
export interface ListDescription extends Pick<
  ListFile,
  'created' | 'deleted' | 'more' | 'next' | 'quota' | 'total'
> {
  readonly name: string;
  /** Namespace of the list's Avro schemas: `<namespace of the API>.<list>`. */
  readonly namespace: string;
  /** Path of the list's requests below `API_BASE_URL`. It may contain variables in braces. */
  readonly path: string;
  readonly method: 'GET' | 'POST';
  readonly body?: Json | undefined;
  readonly query: Parameters;
  /**
   * Parameters that limit a request to records modified in a window. Undefined if the list has none: then only full scans detect changes.
   */
  readonly dates?: ListFile['dates'];
  readonly paging: NonNullable<ListFile['paging']>;
  /** Greatest page size that the API documents. Set whenever requests state the page size; otherwise it may be undefined. */
  readonly limit?: ListFile['limit'];
  /** Number of the first page if pages are requested by their numbers (paging `page`). With any other paging it has no effect. */
  readonly first: number;
  /** JSON Pointer of the array of records in the response body. */
  readonly records: string;
  /** JSON Pointers of a page's offset and size in responses. They show when the server served another page than requested. */
  readonly reported?: ListFile['reported'];
  /**
   * JSON Pointer of a flag in the response body. If the flag is not true, the response reports an error. If `ok` is undefined, a response
   * reports an error if it has no records and looks like an error message.
   */
  readonly ok?: ListFile['ok'];
  /**
   * Candidates for the key of the list's records, each of one or several fields. A sole candidate is the key. Of several, the first that
   * identifies the records of the first page is the key.
   */
  readonly keyCandidates: readonly (readonly string[])[];
  /**
   * Names of the fields that may have the modification time of a record; the first that contains a time is used. Empty if there are no such
   * fields.
   */
  readonly updated: readonly string[];
  /** How to request a single record by its key; undefined if the API has no such request. */
  readonly one: SingleRead | undefined;
  /** Maps the name of an array in the list's records to the name of the field that identifies the array's elements. */
  readonly arrays: Readonly<Record<string, string>>;
  readonly statuses: StatusTable | undefined;
  /** Avro schema of the list's records. Undefined if their fields are not documented: the schema is then inferred from the records. */
  readonly types: RecordSchema | undefined;
  /** Whether a record counts as deleted if two full scans that read the same keys do not contain it. */
  readonly agreed: boolean;
}

/** How to request a single record by its key. */
export interface SingleRead {
  readonly path: string;
  readonly query: Parameters;
  /** JSON Pointer, within the response body, to the record or to an array that contains the record. */
  readonly record: string;
  /** HTTP statuses with which the API says that there is no record with the requested key. */
  readonly gone: readonly number[];
  /** Whether only keys that consist of digits can be requested. */
  readonly digitsOnly: boolean;
}

/** Status fields of a list's records, whose changes are published as separate events. */
export interface StatusTable {
  /** Name of the topic with the status changes, without `TOPIC_PREFIX`. */
  readonly topic: string;
  /** Avro schema of the status changes. Default: a record schema named `StatusChange` in the list's namespace. */
  readonly schema: RecordSchema;
  readonly subjects: readonly StatusTableSubject[];
}

/** A kind of object that has status fields: the record itself, an object in it, or the elements of an array in it. */
export interface StatusTableSubject {
  readonly name: string;
  /** Names of the fields from the record to the object or array; empty for the record itself. */
  readonly path: readonly string[];
  /** Status fields of the object, each as a path of property names from the object. Simultaneous changes are published in this order. */
  readonly fields: readonly (readonly string[])[];
  /**
   * Name of the object's field with the time of a status change. The record's modification time is used if the name is undefined or the
   * field has no valid time.
   */
  readonly time: string | undefined;
  /** Whether the field named by `time` contains the object's creation time. Such a time applies only to changes that added the object. */
  readonly isTimeOfNew: boolean;
}

/** Name of a status field in events, metrics and logs: the names on its path, with dots between them. */
export function statusFieldName(path: readonly string[]): string {
  return path.join('.');
}

/** Returns the names of the topics with status changes, without `TOPIC_PREFIX`. */
export function statusTopics({ lists }: Pick<ApiDescription, 'lists'>): string[] {
  return lists.flatMap(({ statuses }) => (statuses ? [statuses.topic] : []));
}

/**
 * Returns the name of a list's total (the number of its records) for messages: the last name of the JSON Pointer, the name of the header,
 * `the total of <path>` for a separate request, or else `the total`.
 */
export function totalName({ total }: Pick<ListDescription, 'total'>): string {
  if (typeof total === 'string') return pointerNames(total).at(-1) ?? 'the total';
  if (total && 'header' in total) return total.header;
  return total && 'path' in total ? `the total of ${total.path}` : 'the total';
}

/** Returns a function that returns the {@link totalName} of the list with a given name. */
export function totalNames(lists: readonly ListDescription[]): (resource: string) => string {
  const totals = new Map(lists.map((list) => [list.name, totalName(list)]));
  return (resource) => totals.get(resource) ?? 'the total';
}

/** Returns the lists with these names. @throws RangeError as {@link listNamed}. */
export function listsNamed(
  description: Pick<ApiDescription, 'lists'>,
  names: readonly string[],
): ListDescription[] {
  return names.map((name) => listNamed(description, name));
}

/**
 * Returns the list with this name.
 *
 * @throws RangeError if the description has no such list.
 */
export function listNamed({ lists }: Pick<ApiDescription, 'lists'>, name: string): ListDescription {
  const found = lists.find((list) => list.name === name);
  if (!found) throw new RangeError(`the description has no list ${name}`);
  return found;
}

/**
 * Whether any page of the list can be requested directly: by list offset, or by page number and page size. If false, pages are requested
 * one after another.
 */
export function isPagedByOffset(list: PagedRequest & Pick<ListDescription, 'paging'>): boolean {
  return list.paging === 'offset' || (list.paging === 'page' && sendsLimit(list));
}

/** The parts of a list's description that may contain the variables of a page. */
type PagedRequest = Pick<ListDescription, 'path' | 'query' | 'body'>;

/** Whether requests for pages state the page size. */
export function sendsLimit({ path, query, body }: PagedRequest): boolean {
  return variablesIn([path, query, body ?? null] as Json).includes('limit');
}

/** Describes a separate request that returns the number of a list's records, for an API whose pages do not state it. */
type TotalRequest = Extract<NonNullable<ListFile['total']>, { readonly path: string }>;

/** Returns the description of the separate request for the number of a list's records; undefined if there is no such request. */
export function totalRequestOf({ total }: Pick<ListFile, 'total'>): TotalRequest | undefined {
  return typeof total === 'object' && 'path' in total ? total : undefined;
}

/** Returns the login of the API; undefined if requests are authorized in another way. */
export function loginOf({ auth }: Pick<ApiDescription, 'auth'>): LoginDescription | undefined {
  return typeof auth === 'object' && 'login' in auth ? auth.login : undefined;
}

/** Returns how the API issues tokens by OAuth 2; undefined if requests are authorized in another way. */
export function oauth2Of({ auth }: Pick<ApiDescription, 'auth'>): OAuth2Description | undefined {
  return typeof auth === 'object' && 'oauth2' in auth ? auth.oauth2 : undefined;
}

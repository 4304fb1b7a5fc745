// Mistakes of a description that its format alone does not show: unknown variables, lists without an end, names that are taken.

import { validateHeaderName, validateHeaderValue } from 'node:http';
import { fieldType, withoutNull } from '../schemas/avro/avro-schema.ts';
import type { AvroType, RecordSchema } from '../schemas/avro/avro-schema.ts';
import { STATUS_CHANGE_FIELDS, wrongStatusFields } from '../schemas/events/own-records.ts';
import { pointerNames } from '../schemas/json/json.ts';
import { CREDENTIALS, isCredential } from './credentials.ts';
import { isPagedByOffset, loginOf, MIN_PAGE_SIZE, totalRequestOf } from './description.ts';
import type { DescriptionFile, ListFile } from './format.ts';
import { perMinuteOf } from './quota-limits.ts';
import { variablesIn } from './template.ts';
import type { Json } from './template.ts';

/** Path from the root of a description to a place in it: names of keys and indices of array elements. */
export type Path = readonly (string | number)[];

/** A mistake in a description, with its place. */
export interface Problem {
  readonly path: Path;
  readonly message: string;
  /** Whether the mistake is the key at the end of `path` itself, and not that key's value. */
  readonly isKey?: boolean;
}

export function parameterSetting(name: string): string {
  return `API_PARAM_${name.toUpperCase()}`;
}

/** A place in a description that needs a setting. `message` is reported if the setting has no value. */
export interface SettingUse extends Problem {
  /** Name of the setting, such as `API_KEY`. */
  readonly setting: string;
}

/** Returns the places that need settings: those in `auth` that contain the variable of a credential, and all entries of `parameters`. */
export function settingUses({ auth, parameters = [] }: DescriptionFile): SettingUse[] {
  const uses = parameters.map((name, index): SettingUse => {
    const setting = parameterSetting(name);
    return { setting, path: ['parameters', index], message: `{${name}} needs ${setting}` };
  });
  for (const [path, text] of textsIn(auth as Json, ['auth'])) {
    for (const name of variablesIn(text).filter(isCredential)) {
      const setting = CREDENTIALS[name];
      uses.push({ setting, path, message: `{${name}} needs ${setting} or ${setting}_FILE` });
    }
  }
  return uses;
}

/** Names that a list or a topic of status changes must not have, each with the reason. */
const RESERVED: ReadonlyMap<string, string> = new Map([
  ...['cursors', 'ledger', 'fleet', 'signals', 'certificates', 'dead-letters'].map(
    (topic) => [topic, 'the service has a topic of that name'] as const,
  ),
  ...['login', 'all', 'kafka', 'registry'].map(
    (label) => [label, 'metrics and the status page use that name'] as const,
  ),
]);

/** Returns the name and the properties (`keys`) of each list in the file, completed by the file's defaults (`list`). */
export function listsOf({ list, lists }: DescriptionFile): [name: string, keys: ListFile][] {
  return Object.entries(lists).map(([name, own]) => [name, { ...list, ...own }]);
}

/** Name of the topic of a list's status changes, without `TOPIC_PREFIX`. */
export function statusTopicOf(name: string, statuses: NonNullable<ListFile['statuses']>): string {
  return statuses.topic ?? `${name}-status-changes`;
}

/**
 * Returns the mistakes of a description that the validation of its format does not detect.
 *
 * @param schemas The schemas of the `.avsc` files that the description names, by file name as in the description.
 */
export function problemsOf(
  file: DescriptionFile,
  schemas: ReadonlyMap<string, RecordSchema>,
): readonly Problem[] {
  return new Checks(file, schemas).problems;
}

/** Matches names of headers that a description must not set: the HTTP client sets them itself, or refuses requests that have them. */
const CLIENT_HEADERS =
  /^(?:connection|content-length|expect|keep-alive|transfer-encoding|upgrade)$/i;

/** Checks a description for mistakes that the validation of its format (the zod schema) does not detect, and collects them. */
class Checks {
  readonly problems: Problem[] = [];
  readonly #file: DescriptionFile;
  readonly #parameters: readonly string[];
  readonly #schemas: ReadonlyMap<string, RecordSchema>;

  constructor(file: DescriptionFile, schemas: ReadonlyMap<string, RecordSchema>) {
    this.#file = file;
    this.#parameters = file.parameters ?? [];
    this.#schemas = schemas;
    this.#auth();
    this.#quotas();
    this.#variables(['headers'], file.headers, []);
    for (const [name, value] of Object.entries(file.headers ?? {})) {
      this.#headerName(['headers', name], name);
      this.#headerValue(['headers', name], String(value));
    }
    if (Object.keys(file.lists).length === 0) {
      this.#wrong(['lists'], 'has no list; describe at least one');
    }
    for (const [name, list] of listsOf(file)) this.#list(name, list);
    this.#topics();
    for (const name of Object.keys(file.measured?.lists ?? {})) {
      if (Object.hasOwn(file.lists, name)) continue;
      this.#wrongKey(
        ['measured', 'lists', name],
        'is not the name of a list in `lists`: correct the name, or remove this entry',
      );
    }
    const used = new Set(variablesIn(file as unknown as Json));
    for (const [index, name] of this.#parameters.entries()) {
      if (used.has(name)) continue;
      this.#wrong(
        ['parameters', index],
        `no text of the description contains {${name}}: remove this parameter, or correct its name`,
      );
    }
  }

  /** Adds a mistake that concerns the value at `path`. */
  #wrong(path: Path, message: string): void {
    this.problems.push({ path, message });
  }

  /** Adds a mistake that concerns the key at the end of `path`. */
  #wrongKey(path: Path, message: string): void {
    this.problems.push({ path, message, isKey: true });
  }

  /** Adds a problem for each limit below one request per minute, and for each `per key` limit in the properties of a list. */
  #quotas(): void {
    const { quota, auth, list, lists } = this.#file;
    const check = (limit: string | undefined, ...path: Path) => {
      if (limit === undefined || perMinuteOf(limit) > 0) return;
      this.#wrong(
        path,
        `${limit} is less than one request a minute, the lowest rate that can be kept; give 60/h or 1440/d at least`,
      );
    };
    const checkOwn = (limit: string | undefined, ...path: Path) => {
      check(limit, ...path);
      if (limit?.endsWith(' per key') !== true) return;
      this.#wrong(
        path,
        'is the quota of a single list, but "per key" means all lists of an API key together: remove "per key"',
      );
    };
    if (typeof quota === 'string') check(quota, 'quota');
    else quota.limits.forEach((limit, index) => check(limit, 'quota', 'limits', index));
    check(loginOf({ auth })?.quota, 'auth', 'login', 'quota');
    checkOwn(list?.quota, 'list', 'quota');
    for (const [name, own] of Object.entries(lists)) checkOwn(own.quota, 'lists', name, 'quota');
  }

  #auth(): void {
    const { auth } = this.#file;
    this.#variables(['auth'], auth as Json, Object.keys(CREDENTIALS));
    if (typeof auth !== 'object') return;
    if ('bearer' in auth) this.#headerValue(['auth', 'bearer'], auth.bearer);
    if ('header' in auth) {
      this.#headerName(['auth', 'header'], auth.header);
      this.#headerValue(['auth', 'value'], auth.value);
    }
    if ('login' in auth) {
      const { body, form, life } = auth.login;
      const path = ['auth', 'login'];
      this.#path([...path, 'path'], auth.login.path);
      if ((body === undefined) === (form === undefined)) {
        this.#wrongKey(path, 'needs either `body` or `form`');
      }
      if (life?.at !== undefined && life.unit === undefined) {
        this.#wrongKey(
          [...path, 'life'],
          'needs `unit` (for example s): without it the unit of the number with which the response gives the lifetime of the token is not known',
        );
      }
    }
    if ('oauth2' in auth) {
      const { token_url: url, grant_type: grant } = auth.oauth2;
      if (!/^https?:\/\//.test(url)) this.#path(['auth', 'oauth2', 'token_url'], url);
      const needed = grant === 'refresh_token' ? 'refresh_token' : 'client_secret';
      if (auth.oauth2[needed] === undefined) {
        this.#wrongKey(['auth', 'oauth2'], `${grant} needs \`${needed}\``);
      }
    }
  }

  /** Adds a problem if the name of a header is invalid, or one of {@link CLIENT_HEADERS}. */
  #headerName(path: Path, name: string): void {
    try {
      validateHeaderName(name);
    } catch {
      return this.#wrong(path, 'is not a valid name of a header: use letters, digits and hyphens');
    }
    if (CLIENT_HEADERS.test(name)) this.#wrong(path, 'is set by the HTTP client: leave it out');
  }

  /** Adds a problem if the value of a header is invalid. */
  #headerValue(path: Path, value: string): void {
    try {
      validateHeaderValue('any', value);
    } catch {
      this.#wrong(
        path,
        'has a line break, or another character that the value of a header must not contain: remove it',
      );
    }
  }

  /** Adds a problem if the path `text` does not begin with a slash. Appended to `API_BASE_URL`, such a path could name another host. */
  #path(path: Path, text: string | undefined): void {
    if (text === undefined || text.startsWith('/')) return;
    this.#wrong(path, 'must begin with /: it is appended to API_BASE_URL');
  }

  #list(name: string, list: ListFile): void {
    const own = this.#file.lists[name]!;
    const defaults = this.#file.list ?? {};
    /**
     * Returns the path of this list's property `key` in the file: `list.<key>` if the list has it only by default, otherwise
     * `lists.<name>.<key>`. `more`: names of the steps from the property to a value in it.
     */
    const at = (key: keyof ListFile, ...more: string[]): Path =>
      key in own || !(key in defaults) ? ['lists', name, key, ...more] : ['list', key, ...more];
    const wrongList = (message: string) => this.#wrongKey(['lists', name], message);
    const wrongKey = (key: keyof ListFile, message: string) => this.#wrongKey(at(key), message);
    const { path, query, body, dates, one, total, paging, next, statuses, limit } = list;

    if (path === undefined) wrongList('needs `path`, the path of the list after API_BASE_URL');
    if (list.records === undefined) {
      wrongList(
        "needs `records`, the place of the records: a JSON Pointer, or '' for the whole body",
      );
    }
    if (list.key === undefined && list.keys === undefined) {
      wrongList('needs `key`, the field that identifies a record (or `keys`: candidates for it)');
    }
    if (own.key !== undefined && own.keys !== undefined) {
      wrongKey('keys', 'is set together with `key`: remove one of them');
    }
    if (paging === undefined) {
      return wrongList('needs `paging`: offset, page, after, cursor, link or none');
    }

    const window = dates ? ['from', 'to'] : [];
    // The variable that selects the page has the name of the kind of paging.
    const pageVariables = paging === 'link' || paging === 'none' ? [] : [paging];
    const allowed = [...pageVariables, 'limit', ...window];
    for (const key of ['path', 'query', 'body'] as const) {
      this.#variables(at(key), list[key], allowed);
    }
    this.#variables(at('dates'), dates, ['from', 'to']);
    this.#path(at('path'), path);
    this.#path(at('one', 'path'), one?.path);
    const singleRead = one && { path: one.path ?? '', query: one.query ?? {} };
    const totalRequest = totalRequestOf(list);
    this.#path(at('total', 'path'), totalRequest?.path);
    for (const key of ['path', 'query'] as const) {
      this.#variables(at('one', key), singleRead?.[key], ['key']);
      this.#variables(at('total', key), totalRequest?.[key], window);
    }

    const sent = new Set(variablesIn([path ?? '', query ?? {}, body ?? null]));
    for (const variable of pageVariables) {
      if (sent.has(variable)) continue;
      this.#wrong(at('paging'), `is ${paging}, but no parameter sends {${variable}}`);
    }
    if (sent.has('limit') && limit === undefined) {
      wrongList('needs `limit`, the greatest page size: a parameter sends {limit}');
    }
    if (sent.has('offset') && !sent.has('limit')) {
      this.#wrong(at('paging'), 'is offset, but no parameter sends {limit}, the size of a page');
    }
    const isByOffset = isPagedByOffset({ paging, path: path ?? '', query: query ?? {}, body });
    if (isByOffset && limit !== undefined && limit < MIN_PAGE_SIZE) {
      this.#wrong(
        at('limit'),
        `is ${limit}, but pages overlap by up to 20 records: the least is ${MIN_PAGE_SIZE}`,
      );
    }
    const isByNext = paging === 'cursor' || paging === 'link';
    if (isByNext && next === undefined) {
      wrongList(`needs \`next\`, the place of the next page: paging is ${paging}`);
    }
    if (!isByNext && own.next !== undefined) {
      wrongKey(
        'next',
        `paging is ${paging}, which does not use it; use \`more\` for "there is a next page"`,
      );
    }
    if (own.first !== undefined && paging !== 'page') {
      wrongKey('first', `paging is ${paging}; only page has a first page number`);
    }
    if (!isByNext && paging !== 'none' && list.more === undefined && total === undefined) {
      wrongList(
        'nothing says where the list ends: give `more`, `next` or `total` (a short page is no end: many servers cap the page size)',
      );
    }
    if (body !== undefined && (list.method ?? 'GET') === 'GET') {
      wrongKey('body', 'a GET has no body; add method: POST');
    }
    if (dates) {
      if (list.updated === undefined) {
        wrongKey(
          'dates',
          "needs `updated`: the records' own modification times say where the next window begins",
        );
      }
      if (!variablesIn(dates).includes('from')) wrongKey('dates', 'no parameter sends {from}');
      for (const parameter of Object.keys(dates)) {
        if (!Object.hasOwn(query ?? {}, parameter)) continue;
        this.#wrongKey(
          at('dates', parameter),
          'is a parameter that `query` sends too: remove it from `dates` or from `query`',
        );
      }
    }
    if (singleRead && !variablesIn(singleRead).includes('key')) wrongKey('one', 'sends no {key}');
    if (statuses) this.#statuses(list, statuses, at);
  }

  #statuses(
    { arrays = {}, types, key, keys }: ListFile,
    { subjects, schema: file = '' }: NonNullable<ListFile['statuses']>,
    at: (key: keyof ListFile, ...more: string[]) => Path,
  ): void {
    const schema = this.#schemas.get(types ?? '');
    if (Object.keys(subjects).length === 0) {
      this.#wrong(
        at('statuses', 'subjects'),
        'is empty: add at least one entry, such as `order: { fields: [status] }`, which names the fields of a record whose changes are published as status changes',
      );
    }
    for (const [name, { at: pointer = '', time, timeOf, fields }] of Object.entries(subjects)) {
      const place = (key: string) => at('statuses', 'subjects', name, key);
      const names = pathNames(pointer);
      const isArray = names.length === 1 && Object.hasOwn(arrays, names[0]!);
      const type = schema && typeAt(schema, names);
      if (schema && !type) {
        this.#wrong(place('at'), `the .avsc file named in \`types\` has no field ${pointer}`);
      } else if (type && elementOf(type) !== type && !isArray) {
        this.#wrong(
          place('at'),
          `${pointer} is an array: name it in the property \`arrays\` of the list, with the field that identifies its elements`,
        );
      }
      if (timeOf !== undefined && time === undefined) {
        this.#wrongKey(place('timeOf'), 'needs `time`, the field with the time of the change');
      }
      for (const [index, field] of fields.entries()) {
        if (!type || typeAt(elementOf(type), pathNames(field))) continue;
        this.#wrong(
          [...place('fields'), index],
          `the .avsc file named in \`types\` has no field ${field} in ${pointer === '' ? 'the record' : pointer}`,
        );
      }
    }
    const statusSchema = this.#schemas.get(file);
    const keyFields = [key ?? [], keys ?? []].flat();
    const wrong = statusSchema ? wrongStatusFields(statusSchema, keyFields) : [];
    if (wrong.length > 0) {
      this.#wrong(
        at('statuses', 'schema'),
        `these fields are missing, unknown or of the wrong type: ${wrong.join(', ')}; the schema of status changes has the fields ${STATUS_CHANGE_FIELDS.join(', ')}, where the key field of the list, of the type ["null", "long"], may stand in place of \`key\``,
      );
    }
  }

  /** Adds a problem for each list and each topic of status changes whose name is reserved or already in use. */
  #topics(): void {
    const taken = new Map<string, string>(RESERVED);
    const take = (topic: string, path: Path, isKey: boolean) => {
      const owner = taken.get(topic);
      if (owner !== undefined) {
        this.problems.push({ path, message: `${owner}; choose another`, isKey });
      }
      taken.set(topic, `lists.${String(path[1])} has a topic of that name`);
    };
    for (const name of Object.keys(this.#file.lists)) take(name, ['lists', name], true);
    for (const [name, { statuses }] of listsOf(this.#file)) {
      if (!statuses) continue;
      const path = ['lists', name, 'statuses', ...(statuses.topic === undefined ? [] : ['topic'])];
      take(statusTopicOf(name, statuses), path, statuses.topic === undefined);
    }
  }

  /** Adds a problem for each variable in the texts of `value` that is neither in `variables` nor a parameter. */
  #variables(place: Path, value: Json | undefined, variables: readonly string[]): void {
    const parameters = this.#parameters;
    for (const [path, text] of textsIn(value, place)) {
      for (const name of variablesIn(text)) {
        if (variables.includes(name) || parameters.includes(name)) continue;
        const names = [
          variables.join(', '),
          parameters.length === 0
            ? ''
            : `the parameter${parameters.length > 1 ? 's' : ''} ${parameters.join(', ')}`,
        ].filter((each) => each !== '');
        const advice =
          names.length > 0 ? `use ${names.join(' or ')}` : 'this text can have no variables';
        this.#wrong(path, `{${name}} is not a variable here; ${advice}`);
      }
    }
  }
}

/** Returns the names on the path to a field. The field is given by its name or by a JSON Pointer. */
export function pathNames(field: string): string[] {
  return field === '' || field.startsWith('/') ? [...pointerNames(field)] : [field];
}

function typeAt(type: AvroType, path: readonly string[]): AvroType | undefined {
  let at: AvroType | undefined = type;
  for (const name of path) {
    const field = fieldType(at, name);
    at = field && withoutNull(field);
  }
  return at;
}

/** Returns the type of the elements if `type` is an array type; returns any other type unchanged. */
function elementOf(type: AvroType): AvroType {
  return typeof type === 'object' && 'items' in type ? withoutNull(type.items) : type;
}

function textsIn(value: Json | undefined, path: Path): [path: Path, text: string][] {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => textsIn(each, [...path, name]));
}

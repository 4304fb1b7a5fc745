// Mistakes of a description that its format alone does not show: unknown variables, lists without an end, names that are taken.

import { validateHeaderName, validateHeaderValue } from 'node:http';
import { fieldType, withoutNull } from '../schemas/avro/avro-schema.ts';
import type { AvroType, RecordSchema } from '../schemas/avro/avro-schema.ts';
import { STATUS_CHANGE_FIELDS, wrongStatusFields } from '../schemas/events/own-records.ts';
import { pointerNames } from '../schemas/json/json.ts';
import { CREDENTIALS, isCredential } from './credentials.ts';
import { loginOf, MIN_PAGE_SIZE, totalRequestOf } from './description.ts';
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
  /** Whether the mistake concerns the key at the end of `path` and not the key's value. */
  readonly isKey?: boolean;
}

/** Returns whether a setting has a value. */
export type IsSet = (setting: string) => boolean;

export function parameterSetting(name: string): string {
  return `API_PARAM_${name.toUpperCase()}`;
}

/** Returns a problem for each credential that `auth` uses, and for each entry of `parameters`, whose setting has no value. */
export function missingSettings(
  { auth, parameters = [] }: DescriptionFile,
  isSet: IsSet,
): Problem[] {
  const problems: Problem[] = parameters.flatMap((name, index) => {
    const setting = parameterSetting(name);
    return isSet(setting)
      ? []
      : [{ path: ['parameters', index], message: `{${name}} needs ${setting}` }];
  });
  for (const [path, text] of textsIn(auth as Json, ['auth'])) {
    for (const name of variablesIn(text).filter(isCredential)) {
      const setting = CREDENTIALS[name];
      if (isSet(setting) || isSet(`${setting}_FILE`)) continue;
      problems.push({ path, message: `{${name}} needs ${setting} or ${setting}_FILE` });
    }
  }
  return problems;
}

/** Variables that the requests for pages must contain, by kind of paging. Their values select the page. */
const PAGE_VARIABLES: Readonly<Record<NonNullable<ListFile['paging']>, readonly string[]>> = {
  offset: ['offset'],
  page: ['page'],
  after: ['after'],
  cursor: ['cursor'],
  link: [],
  none: [],
};

/** Reserved names, which a list or a topic of status changes must not have, each with the reason. */
const RESERVED: ReadonlyMap<string, string> = new Map([
  ...['cursors', 'ledger', 'fleet', 'signals', 'certificates', 'dead-letters'].map(
    (topic) => [topic, 'the service has a topic of that name'] as const,
  ),
  ...['login', 'all'].map((label) => [label, 'metrics use that name'] as const),
]);

/**
 * Returns each list of the description file, as its name and its properties (`keys`). A property that the list itself lacks has the value
 * that the file's `list` sets for all lists.
 */
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
): Problem[] {
  const problems: Problem[] = [...authProblems(file), ...quotaProblems(file)];
  const { parameters = [] } = file;
  checkVariables(problems, ['headers'], file.headers, [], parameters);
  for (const [name, value] of Object.entries(file.headers ?? {})) {
    problems.push(...headerProblems(['headers', name], name, String(value)));
  }
  if (Object.keys(file.lists).length === 0) {
    problems.push({ path: ['lists'], message: 'has no list; describe at least one' });
  }
  for (const [name, list] of listsOf(file)) {
    problems.push(...listProblems(file, name, list, schemas));
  }
  problems.push(...topicProblems(file));
  for (const name of Object.keys(file.measured?.lists ?? {})) {
    if (Object.hasOwn(file.lists, name)) continue;
    const path = ['measured', 'lists', name];
    problems.push({
      path,
      message: 'is not the name of a list in `lists`: correct the name, or remove this entry',
      isKey: true,
    });
  }
  const used = new Set(variablesIn(file as unknown as Json));
  for (const [index, name] of parameters.entries()) {
    if (used.has(name)) continue;
    problems.push({
      path: ['parameters', index],
      message: `no text of the description contains {${name}}: remove this parameter, or correct its name`,
    });
  }
  return problems;
}

/** Returns a problem for each limit that the service does not support. */
function quotaProblems({ quota, auth, list, lists }: DescriptionFile): Problem[] {
  const problems: Problem[] = [];
  const check = (limit: string | undefined, ...path: (string | number)[]) => {
    if (limit === undefined || perMinuteOf(limit) > 0) return;
    const message = `${limit} is less than one request a minute, the lowest rate that can be kept; give 60/h or 1440/d at least`;
    problems.push({ path, message });
  };
  const checkOwn = (limit: string | undefined, ...path: string[]) => {
    check(limit, ...path);
    if (limit?.endsWith(' per key') !== true) return;
    problems.push({
      path,
      message:
        'is the quota of a single list, but "per key" means all lists of an API key together: remove "per key"',
    });
  };
  if (typeof quota === 'string') check(quota, 'quota');
  else quota.limits.forEach((limit, index) => check(limit, 'quota', 'limits', index));
  check(loginOf({ auth })?.quota, 'auth', 'login', 'quota');
  checkOwn(list?.quota, 'list', 'quota');
  for (const [name, own] of Object.entries(lists)) checkOwn(own.quota, 'lists', name, 'quota');
  return problems;
}

function authProblems({ auth, parameters = [] }: DescriptionFile): Problem[] {
  const problems: Problem[] = [];
  checkVariables(problems, ['auth'], auth as Json, Object.keys(CREDENTIALS), parameters);
  if (typeof auth !== 'object') return problems;
  if ('header' in auth) {
    problems.push(...headerProblems(['auth', 'header'], auth.header, auth.value));
  }
  if ('login' in auth) {
    const { body, form, life } = auth.login;
    const path = ['auth', 'login'];
    problems.push(...pathProblems([...path, 'path'], auth.login.path));
    if ((body === undefined) === (form === undefined)) {
      problems.push({ path, message: 'needs either `body` or `form`', isKey: true });
    }
    if (life?.at !== undefined && life.unit === undefined) {
      problems.push({
        path: [...path, 'life'],
        message:
          'needs `unit` (for example s): without it the unit of the number with which the response gives the lifetime of the token is not known',
        isKey: true,
      });
    }
  }
  if ('oauth2' in auth) {
    const { token_url: url } = auth.oauth2;
    if (!/^https?:\/\//.test(url)) {
      problems.push(...pathProblems(['auth', 'oauth2', 'token_url'], url));
    }
    const { grant_type: grant, client_secret: secret, refresh_token: token } = auth.oauth2;
    const missing =
      grant === 'refresh_token'
        ? token === undefined && 'refresh_token'
        : secret === undefined && 'client_secret';
    if (missing) {
      problems.push({
        path: ['auth', 'oauth2'],
        message: `${grant} needs \`${missing}\``,
        isKey: true,
      });
    }
  }
  return problems;
}

/** Headers that the HTTP client sets, in lower case. It refuses requests with values for them. */
const CLIENT_HEADERS: ReadonlySet<string> = new Set([
  ...['connection', 'content-length', 'expect', 'keep-alive', 'transfer-encoding'],
  'upgrade',
]);

/** Returns a problem if a request with this header can't be sent. */
function headerProblems(path: Path, name: string, value: string): Problem[] {
  const problem = (message: string) => [{ path, message }];
  try {
    validateHeaderName(name);
  } catch {
    return problem('is not a valid name of a header: use letters, digits and hyphens');
  }
  if (CLIENT_HEADERS.has(name.toLowerCase()))
    return problem('is set by the HTTP client: leave it out');
  try {
    validateHeaderValue(name, value);
  } catch {
    return problem(
      'has a line break, or another character that the value of a header must not contain: remove it',
    );
  }
  return [];
}

/** Returns a problem if a path does not begin with a slash: after the base URL it would name another host. */
function pathProblems(path: Path, text: string | undefined): Problem[] {
  if (text === undefined || text.startsWith('/')) return [];
  return [{ path, message: 'must begin with /: it is appended to API_BASE_URL' }];
}

function listProblems(
  file: DescriptionFile,
  name: string,
  list: ListFile,
  schemas: ReadonlyMap<string, RecordSchema>,
): Problem[] {
  const problems: Problem[] = [];
  const { parameters = [] } = file;
  const own = file.lists[name]!;
  /**
   * Returns the path, within the description file, of the property `key` of this list: `lists.<name>.<key>`, or `list.<key>` if only the
   * defaults of all lists have it. `more`: further steps, to a value within the property.
   */
  const at = (key: keyof ListFile, ...more: string[]): Path =>
    key in own || !(key in (file.list ?? {}))
      ? ['lists', name, key, ...more]
      : ['list', key, ...more];
  const wrongList = (message: string) => {
    problems.push({ path: ['lists', name], message, isKey: true });
  };
  const wrongKey = (key: keyof ListFile, message: string) => {
    problems.push({ path: at(key), message, isKey: true });
  };
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
  if (own.key !== undefined && own.keys !== undefined)
    wrongKey('keys', 'is set together with `key`: remove one of them');
  if (paging === undefined) {
    wrongList('needs `paging`: offset, page, after, cursor, link or none');
    return problems;
  }

  const window = dates ? ['from', 'to'] : [];
  const allowed = [...PAGE_VARIABLES[paging], 'limit', ...window];
  for (const key of ['path', 'query', 'body'] as const) {
    checkVariables(problems, at(key), list[key], allowed, parameters);
  }
  checkVariables(problems, at('dates'), dates, ['from', 'to'], parameters);
  problems.push(...pathProblems(at('path'), path), ...pathProblems(at('one', 'path'), one?.path));
  const singleRead = one && { path: one.path ?? '', query: one.query ?? {} };
  for (const key of ['path', 'query'] as const) {
    checkVariables(problems, at('one', key), singleRead?.[key], ['key'], parameters);
  }
  const totalRequest = totalRequestOf(list);
  if (totalRequest) {
    problems.push(...pathProblems(at('total', 'path'), totalRequest.path));
    for (const key of ['path', 'query'] as const) {
      checkVariables(problems, at('total', key), totalRequest[key], window, parameters);
    }
  }

  const sent = new Set(
    variablesIn({ path: path ?? '', query: query ?? {}, body: (body ?? null) as Json }),
  );
  for (const variable of PAGE_VARIABLES[paging]) {
    if (sent.has(variable)) continue;
    const message = `is ${paging}, but no parameter sends {${variable}}`;
    problems.push({ path: at('paging'), message });
  }
  if (sent.has('limit') && limit === undefined) {
    wrongList('needs `limit`, the greatest page size: a parameter sends {limit}');
  }
  if (sent.has('offset') && !sent.has('limit')) {
    const message = 'is offset, but no parameter sends {limit}, the size of a page';
    problems.push({ path: at('paging'), message });
  }
  const overlaps = paging === 'offset' || (paging === 'page' && sent.has('limit'));
  if (overlaps && limit !== undefined && limit < MIN_PAGE_SIZE) {
    const message = `is ${limit}, but pages overlap by up to 20 records: the least is ${MIN_PAGE_SIZE}`;
    problems.push({ path: at('limit'), message });
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
      problems.push({
        path: at('dates', parameter),
        message: 'is a parameter that `query` sends too: remove it from `dates` or from `query`',
        isKey: true,
      });
    }
  }
  if (singleRead && !variablesIn(singleRead).includes('key')) wrongKey('one', 'sends no {key}');
  if (statuses) {
    problems.push(...statusProblems(list, statuses, at, schemas.get(list.types ?? '')));
    problems.push(...statusSchemaProblems(list, schemas, at('statuses', 'schema')));
  }
  return problems;
}

function statusProblems(
  { arrays = {} }: ListFile,
  { subjects }: NonNullable<ListFile['statuses']>,
  at: (key: keyof ListFile, ...more: string[]) => Path,
  schema: RecordSchema | undefined,
): Problem[] {
  const problems: Problem[] = [];
  if (Object.keys(subjects).length === 0) {
    problems.push({
      path: at('statuses', 'subjects'),
      message: 'is empty: name at least one kind of object, with the fields that hold its status',
    });
  }
  for (const [name, { at: pointer = '', time, timeOf, fields }] of Object.entries(subjects)) {
    const place = (key: string) => at('statuses', 'subjects', name, key);
    const names = pathNames(pointer);
    const isArray = names.length === 1 && Object.hasOwn(arrays, names[0]!);
    const type = schema && typeAt(schema, names);
    if (schema && !type) {
      problems.push({
        path: place('at'),
        message: `the .avsc file named in \`types\` has no field ${pointer}`,
      });
    } else if (type && isList(type) && !isArray) {
      problems.push({
        path: place('at'),
        message: `${pointer} is an array: name it in the property \`arrays\` of the list, with the field that identifies its elements`,
      });
    }
    if (timeOf !== undefined && time === undefined) {
      problems.push({
        path: place('timeOf'),
        message: 'needs `time`, the field with the time of the change',
        isKey: true,
      });
    }
    for (const [index, field] of fields.entries()) {
      if (!type || typeAt(elementOf(type), pathNames(field))) continue;
      problems.push({
        path: [...place('fields'), index],
        message: `the .avsc file named in \`types\` has no field ${field} in ${pointer === '' ? 'the record' : pointer}`,
      });
    }
  }
  return problems;
}

/** Returns a problem if the schema of a list's status changes is one that the service cannot write. */
function statusSchemaProblems(
  { statuses, key, keys }: ListFile,
  schemas: ReadonlyMap<string, RecordSchema>,
  path: Path,
): Problem[] {
  const schema = schemas.get(statuses?.schema ?? '');
  const keyFields = [key ?? [], keys ?? []].flat();
  const wrong = schema ? wrongStatusFields(schema, keyFields) : [];
  if (wrong.length === 0) return [];
  const expected = `the schema of status changes has the fields ${STATUS_CHANGE_FIELDS.join(', ')}, where the key field of the list, of the type ["null", "long"], may stand in place of \`key\``;
  return [
    {
      path,
      message: `these fields are missing, unknown or of the wrong type: ${wrong.join(', ')}; ${expected}`,
    },
  ];
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

const isList = (type: AvroType) => typeof type === 'object' && 'items' in type;

function elementOf(type: AvroType): AvroType {
  return typeof type === 'object' && 'items' in type ? withoutNull(type.items) : type;
}

/** Returns a problem for each name of a list or topic that another list, the service or a metric uses already. */
function topicProblems(file: DescriptionFile): Problem[] {
  const problems: Problem[] = [];
  const taken = new Map<string, string>(RESERVED);
  const take = (topic: string, path: Path, isKey: boolean) => {
    const owner = taken.get(topic);
    if (owner !== undefined) problems.push({ path, message: `${owner}; choose another`, isKey });
    taken.set(topic, `lists.${String(path[1])} has a topic of that name`);
  };
  for (const name of Object.keys(file.lists)) take(name, ['lists', name], true);
  for (const [name, { statuses }] of listsOf(file)) {
    if (!statuses) continue;
    const path = ['lists', name, 'statuses', ...(statuses.topic === undefined ? [] : ['topic'])];
    take(statusTopicOf(name, statuses), path, statuses.topic === undefined);
  }
  return problems;
}

function textsIn(value: Json | undefined, path: Path): [path: Path, text: string][] {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, each]) => textsIn(each, [...path, name]));
}

/** Adds a problem for each variable in the texts of `value` that is neither in `variables` nor in `parameters`. */
function checkVariables(
  problems: Problem[],
  place: Path,
  value: Json | undefined,
  variables: readonly string[],
  parameters: readonly string[],
): void {
  for (const [path, text] of textsIn(value, place)) {
    for (const name of variablesIn(text)) {
      if (variables.includes(name) || parameters.includes(name)) continue;
      const names = [
        ...(variables.length > 0 ? [variables.join(', ')] : []),
        ...(parameters.length > 0
          ? [`the parameter${parameters.length > 1 ? 's' : ''} ${parameters.join(', ')}`]
          : []),
      ];
      const advice =
        names.length > 0 ? `use ${names.join(' or ')}` : 'this text can have no variables';
      problems.push({ path, message: `{${name}} is not a variable here; ${advice}` });
    }
  }
}

import type { z } from 'zod';
import { descriptionFormat } from '../../src/description/format.ts';

/** Facts about a key that its definition lacks: the default, when it applies, and an example of its value in YAML. */
interface About {
  /** Markdown; absent if the key has no default. */
  readonly default?: string;
  /** Kinds of paging, of `auth` or other keys with which the key has an effect; absent: always. */
  readonly with?: string;
  /** Markdown after the description of the value: what the key has an effect on. */
  readonly note?: string;
  readonly example: string;
}

/** Keys by their path; `*` is a name that the file chooses. */
const KEYS: Readonly<Record<string, About>> = {
  format: { example: '1' },
  api: { example: 'shop' },
  namespace: { default: '`cellarstream.` and the name of the API', example: 'org.shop' },
  parameters: { default: 'none', example: '[shop]' },
  headers: { default: 'none', example: '{ Accept: application/vnd.github+json }' },
  times: {
    default: '`iso`',
    note: '. It applies to the fields `updated` and `created`, to `time` of statuses, and to `{from}` and `{to}`. The types of fields in Avro do not depend on it: they are [learned from the values](resources.md#schemas), so that a time in seconds stays a number',
    example: "{ pattern: 'yyyy-MM-dd.HH:mm:ss', zone: UTC }",
  },
  'times.pattern': { example: "'yyyy-MM-dd.HH:mm:ss'" },
  'times.zone': { example: 'UTC' },
  errors: { default: 'the built-in meanings', example: '{ 403: quota }' },
  auth: { example: "{ bearer: '{api_key}' }" },
  'auth.bearer': { example: "'{api_key}'" },
  'auth.basic': {
    note: ". An API key in place of the user, without a password: `['{api_key}', '']`",
    example: "['{username}', '{password}']",
  },
  'auth.header': { with: '`value`', example: 'X-Api-Key' },
  'auth.query': { with: '`value`', example: 'api_key' },
  'auth.value': { with: '`header`, `query`', example: "'{api_key}'" },
  'auth.login': { example: "{ path: /session, form: { key: '{api_key}' }, token: /token }" },
  'auth.login.path': { example: '/auth/login' },
  'auth.login.body': {
    default: 'required, or `form`',
    example: "{ email: '{username}', password: '{password}' }",
  },
  'auth.login.form': {
    default: 'required, or `body`',
    example: "{ user: '{username}', password: '{password}' }",
  },
  'auth.login.token': { example: '/data/access_token' },
  'auth.login.life': { default: '30 minutes', example: '{ at: /expires_in, unit: s }' },
  'auth.login.life.jwt': { default: '`false`', example: 'true' },
  'auth.login.life.at': { example: '/expires_in' },
  'auth.login.life.unit': { with: '`at`', example: 's' },
  'auth.login.life.default': { default: '`30min`', example: '1h' },
  'auth.login.refused': { default: '`[400, 401, 403]`', example: '[401]' },
  'auth.login.quota': { default: '`10/min`', example: '5/min' },
  'auth.oauth2': {
    example:
      "{ token_url: /token, grant_type: client_credentials, client_id: '{client_id}', client_secret: '{client_secret}' }",
  },
  'auth.oauth2.token_url': { example: '/oauth/token' },
  'auth.oauth2.grant_type': { example: 'client_credentials' },
  'auth.oauth2.client_id': { example: "'{client_id}'" },
  'auth.oauth2.client_secret': {
    default: 'required by `client_credentials`',
    example: "'{client_secret}'",
  },
  'auth.oauth2.refresh_token': {
    default: 'required by grant `refresh_token`',
    example: "'{refresh_token}'",
  },
  'auth.oauth2.scope': { default: 'not sent', example: 'orders:read' },
  'auth.oauth2.client_auth': { default: '`basic`', example: 'body' },
  quota: { note: '. See [Quota](#quota)', example: '100/min per list' },
  'quota.limits': { example: "['2/s per key', '5000/h per key']" },
  'quota.remaining': { example: '{ header: X-RateLimit-Remaining }' },
  'quota.reset': { example: '{ header: X-RateLimit-Reset, unit: epoch-s }' },
  'quota.reset.header': { example: 'X-RateLimit-Reset' },
  'quota.reset.unit': { default: '`s`', example: 'epoch-s' },
  'quota.retryAfter': { default: '`{ header: Retry-After }`', example: '{ header: X-Retry-In }' },
  'quota.free': { default: 'none', example: '[304]' },
  list: { default: 'none', example: '{ paging: offset, records: /data }' },
  lists: { example: '{ orders: { path: /orders } }' },
  'lists.*.path': { default: 'required', example: '/v2/orders' },
  'lists.*.method': { default: '`GET`', example: 'POST' },
  'lists.*.body': { with: '`method: POST`', example: "{ after: '{after}', first: '{limit}' }" },
  'lists.*.query': { default: 'none', example: "{ offset: '{offset}', limit: '{limit}' }" },
  'lists.*.dates': {
    default: 'none: the list is read by full scans alone',
    with: '`updated`',
    example: "{ since: '{from}', until: '{to}' }",
  },
  'lists.*.limit': { default: 'required', with: 'a parameter with `{limit}`', example: '250' },
  'lists.*.paging': { default: 'required', example: 'after' },
  'lists.*.first': { default: '1', with: 'paging `page`', example: '0' },
  'lists.*.records': { default: 'required', example: '/data' },
  'lists.*.total': { default: 'none', example: '{ header: X-Total-Count }' },
  'lists.*.total.path': { example: '/orders/count' },
  'lists.*.total.query': { default: 'none', example: '{ status: any }' },
  'lists.*.total.at': { example: '/count' },
  'lists.*.more': {
    default: 'none',
    with: 'paging `offset`, `page`, `after`',
    example: '/has_more',
  },
  'lists.*.next': {
    default: 'required',
    with: 'paging `cursor`, `link`',
    example: '{ link: next }',
  },
  'lists.*.reported': {
    default: 'none',
    with: 'paging `offset`, `page`',
    example: '{ offset: /meta/offset, limit: /meta/limit }',
  },
  'lists.*.reported.offset': { example: '/meta/offset' },
  'lists.*.reported.limit': { example: '/meta/limit' },
  'lists.*.ok': { default: 'none', example: '/success' },
  'lists.*.key': { default: 'required, or `keys`', example: 'sku+site' },
  'lists.*.keys': { with: 'no `key`', example: '[id, uuid]' },
  'lists.*.updated': {
    default: 'none',
    note: ' of the record itself, of which the first counts that has a time. That time is `source.ts_ms` of events and the default time of status changes, shows which of two states is newer, and determines where the next window of `dates` begins',
    example: '[date_updated, date_created]',
  },
  'lists.*.created': {
    default: 'none',
    note: ', of the record itself. With it, a record that was created after the initial snapshot began is published as `c` even before the snapshot has ended; without it, as `r`. It shows no changes, so it does not replace `updated`',
    example: 'created_at',
  },
  'lists.*.one': {
    note: '. `deleted` applies to its response too',
    default: 'none: single records are not requested',
    example: "{ path: '/orders/{key}' }",
  },
  'lists.*.one.path': { default: "the list's `path`", example: "'/orders/{key}'" },
  'lists.*.one.query': {
    default: "without `path` the list's `query`, otherwise none",
    example: "{ id: '{key}' }",
  },
  'lists.*.one.record': {
    default: "without `path` the list's `records`, otherwise the whole body",
    example: '/order',
  },
  'lists.*.one.gone': { default: '`[404]`', example: '[404, 410]' },
  'lists.*.one.keys': { default: 'all keys', example: 'digits' },
  'lists.*.deleted': {
    default: 'none',
    note: '. It also applies to the response for a single record (`one`): an API that still answers with 200 for a deleted record needs it, because the response would otherwise be published as an update',
    example: '{ at: /deleted, is: true }',
  },
  'lists.*.deleted.at': { example: '/deleted' },
  'lists.*.deleted.is': { example: 'true' },
  'lists.*.arrays': { default: 'none', example: '{ line_items: id }' },
  'lists.*.statuses': { default: 'none', example: '{ subjects: { order: { fields: [status] } } }' },
  'lists.*.statuses.topic': { default: '`<list>-status-changes`', example: 'order-states' },
  'lists.*.statuses.schema': { default: '`StatusChange`', example: './order-state.avsc' },
  'lists.*.statuses.subjects': { example: '{ order: { fields: [status] } }' },
  'lists.*.statuses.subjects.*.at': { default: 'the record itself', example: '/fulfillments' },
  'lists.*.statuses.subjects.*.fields': { example: '[state, /status/name]' },
  'lists.*.statuses.subjects.*.time': {
    default: 'the modification time of the record',
    example: 'updated_at',
  },
  'lists.*.statuses.subjects.*.timeOf': { with: '`time`', example: 'new' },
  'lists.*.types': { default: 'learned from the records', example: './order.avsc' },
  'lists.*.quota': {
    default: "the API's limits `per list`",
    note: ". It counts this list's requests alone, and replaces the limits `per list`; those `per key` stay in force",
    example: '10/min',
  },
  'lists.*.agreed': { default: '`false`', example: 'true' },
  measured: {
    default: 'none',
    example: '{ date: 2026-05-01, lists: { orders: { refuted: [] } } }',
  },
  'measured.date': { example: "'2026-05-01'" },
  'measured.lists': { example: '{ orders: { refuted: [limit] } }' },
  'measured.lists.*.refuted': { default: '`[]`', example: '[limit]' },
  'measured.lists.*.notRefuted': { default: '`[]`', example: '[key, order]' },
};

/** Titles of the sections, by the path of their keys. */
const SECTIONS: Readonly<Record<string, string>> = {
  '': 'The file',
  times: 'Times',
  auth: 'Credentials',
  'auth.login': 'A login',
  'auth.login.life': 'The life of a token',
  'auth.oauth2': 'OAuth 2',
  quota: 'Quota',
  'quota.reset': 'When the quota begins anew',
  'lists.*': 'A list',
  'lists.*.total': 'A total with a request of its own',
  'lists.*.reported': 'The page that a response states',
  'lists.*.one': 'A single record',
  'lists.*.deleted': 'Records shown as deleted',
  'lists.*.statuses': 'Statuses',
  'lists.*.statuses.subjects.*': 'The subject of a status',
  measured: 'Measurements',
  'measured.lists.*': 'Measured claims',
};

/** Continuations of the sentence at the beginning of a section. */
const REMARKS: Readonly<Record<string, string>> = {
  auth: ', if it is not `none`: one kind.',
  quota: `, if it is not a single limit. A limit with \`per list\` counts the requests of each list separately. A limit with \`per key\`, or without either, counts those of all lists together. If
there are several limits, all of them are kept. A limit an hour or a day is kept as its part of a minute: \`5000/h\` is 83 requests a minute. [\`QUOTA_PER_MINUTE\` and
\`QUOTA_SCOPE\`](settings.md#quota) replace the smallest limit and its scope.`,
  times: ', if it is not the name of a form.',
  'lists.*': '. `list` may have all of them as defaults for the lists that lack them.',
  measured: ', which `check --measure` prints.',
};

/** A key of the format. */
export interface FormatKey extends About {
  readonly path: string;
  readonly name: string;
  readonly schema: z.ZodType;
  readonly isRequired: boolean;
}

/** Returns the keys of the format by the path of the object that has them, in the order of the format. */
export function formatKeys(): ReadonlyMap<string, readonly FormatKey[]> {
  const sections = new Map<string, FormatKey[]>();
  collect(descriptionFormat, '', sections);
  const paths = [...sections.values()].flat().map(({ path }) => path);
  const unknown = Object.keys(KEYS).filter((path) => !paths.includes(path));
  if (unknown.length > 0) throw new Error(`KEYS has what the format does not: ${unknown.join()}`);
  return sections;
}

function collect(schema: z.ZodType, path: string, sections: Map<string, FormatKey[]>): void {
  const { def } = schema as unknown as { readonly def: Def };
  if (def.type === 'union') for (const option of def.options) collect(option, path, sections);
  if (def.type === 'record') collect(def.valueType, path === '' ? '*' : `${path}.*`, sections);
  if (def.type !== 'object' || isPlace(def.shape)) return;
  const keys = sections.get(path) ?? [];
  sections.set(path, keys);
  for (const [name, entry] of Object.entries(def.shape)) {
    const isRequired = !entry.isOptional();
    const inner = isRequired ? entry : (entry as z.ZodOptional<z.ZodType>).unwrap();
    const place = path === '' ? name : `${path}.${name}`;
    if (keys.some((key) => key.path === place)) continue; // `value` of two kinds of auth
    const about = KEYS[place];
    if (!about && place !== 'list') throw new Error(`KEYS lacks ${place}`);
    keys.push({ ...about!, path: place, name, schema: inner, isRequired });
    if (place !== 'list') collect(inner, place, sections); // its keys are those of `lists.*`
  }
}

type Def =
  | { readonly type: 'object'; readonly shape: Readonly<Record<string, z.ZodType>> }
  | { readonly type: 'union'; readonly options: readonly z.ZodType[] }
  | { readonly type: 'record'; readonly valueType: z.ZodType }
  | { readonly type: 'other' };

/** Whether an object is a place in a response: `{header}` or `{link}`. */
function isPlace(shape: Readonly<Record<string, z.ZodType>>): boolean {
  const names = Object.keys(shape);
  return names.length === 1 && ['header', 'link'].includes(names[0]!);
}

/** docs/description-format.md, made of the format. */
export function descriptionFormatText(): string {
  const sections = [...formatKeys()];
  return `<!-- Generated by \`npm run docs\` from src/description/format.ts: change that, or test/docs/description-format-text.ts. -->

# The description format

For everyone who writes a description of an API: every key, its type, its default, when it applies, and an example. [Describe your API](describe-your-api.md) is the tutorial,
[descriptions](descriptions.md) has the rules that the keys share, [examples/apis](../examples/apis) has whole descriptions.

A **place** is a part of a response: a JSON Pointer such as \`/data/items\` (\`''\` is the whole body), \`{header: X-Total-Count}\`, or \`{link: next}\`, a relation of the
\`Link\` header. **Templates** have variables in braces; a parameter whose variable has no value is left out.

| variable | is | in |
| --- | --- | --- |
| \`{offset}\` | the number of records before the page | paging \`offset\` |
| \`{page}\` | the number of the page | paging \`page\` |
| \`{after}\` | the key of the record before the page | paging \`after\` |
| \`{cursor}\` | the text at \`next\` of the response before | paging \`cursor\` |
| \`{limit}\` | the page size | \`path\`, \`query\`, \`body\` |
| \`{from}\`, \`{to}\` | the window of modification times | \`dates\`; with \`dates\` also \`path\`, \`query\`, \`body\`, \`total\` |
| \`{key}\` | the key of a record | \`one\` |
| \`{api_key}\`, \`{username}\`, \`{password}\`, \`{client_id}\`, \`{client_secret}\`, \`{refresh_token}\` | settings: \`API_KEY\`, \`API_USERNAME\`, ... | \`auth\` alone |
| names of \`parameters\` | settings: \`{shop}\` is \`API_PARAM_SHOP\` | everywhere |

An unknown key, variable or value is an error with line and column.
${sections.map(([path, keys]) => sectionText(path, keys)).join('')}`;
}

function sectionText(path: string, keys: readonly FormatKey[]): string {
  const title = SECTIONS[path];
  if (title === undefined) throw new Error(`SECTIONS lacks ${path}`);
  const where =
    path === '' ? '' : `\nThe keys of \`${path.replaceAll('*', 'NAME')}\`${REMARKS[path] ?? '.'}\n`;
  return `
## ${title}
${where}
| key | value | default | with | example |
| --- | --- | --- | --- | --- |
${keys.map(row).join('\n')}
`;
}

function row(key: FormatKey) {
  const { path, name, schema, isRequired, default: preset, with: scope, note, example } = key;
  const isChoice = path.startsWith('auth.') && path.split('.').length === 2;
  const usual = preset ?? (isRequired && !isChoice ? 'required' : '');
  const value = (schema.description ?? '')
    .replace(/,? in which \{name\} is a variable/, ', a template')
    .replace('a JSON Pointer, {header: NAME} or {link: RELATION}', 'a place');
  const cells = [
    `\`${name}\``,
    value + (note ?? ''),
    usual,
    scope ?? '',
    `\`${name}: ${example}\``,
  ];
  return `| ${cells.join(' | ')} |`;
}

// The format of description files, version 1. One zod definition validates them, gives their types and generates the JSON Schema for editors.
// The text of `describe` is what error messages say is expected, and the description in the JSON Schema.

import { z } from 'zod';

/** Returns the message for a value that the format does not allow: what is expected, and what the file contains. */
export function expected(what: string, found: unknown): string {
  return found === undefined
    ? `is missing; expected ${what}`
    : `expected ${what}, found ${quoted(found)}`;
}

function quoted(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return `{${Object.keys(value).join(', ')}}`;
  const text = JSON.stringify(value);
  return text.length > 40 ? `${text.slice(0, 40)}...` : text;
}

const matching = (pattern: RegExp, what: string) =>
  z
    .string()
    .regex(pattern, { error: ({ input }) => expected(what, input) })
    .describe(what);
const text = (what: string) => matching(/./, what);
const template = (what: string) => text(`${what}, in which {name} is a variable`);
const name = (what: string) => matching(/^[a-z][a-z0-9-]*$/, `${what}: letters a to z, digits, -`);
const pointer = (what: string) =>
  matching(/^(?:\/(?:[^~/]|~[01])*)*$/, `${what}, a JSON Pointer such as /data`);
const keyFields = (what: string) =>
  matching(/^[^+]+(?:\+[^+]+)*$/, `${what}, such as id or sku+site`);
const oneOf = <const T extends readonly [string, ...string[]]>(values: T, what: string) =>
  z.enum(values).describe(`${what}: ${values.join(', ')}`);
const wholeNumber = (least: number, most: number, what: string) => {
  const described = `${what}, a whole number from ${least} to ${most}`;
  const error = ({ input }: { readonly input?: unknown }) => expected(described, input);
  return z.int({ error }).min(least, { error }).max(most, { error }).describe(described);
};
const some = <T extends z.ZodType>(element: T, what: string) =>
  z
    .array(element)
    .min(1, { error: () => `is empty; expected ${what}` })
    .describe(what);
const object = <const T extends z.core.$ZodLooseShape>(what: string, shape: T) =>
  z.strictObject(shape).describe(what);
const either = <const T extends readonly z.core.SomeType[]>(what: string, alternatives: T) =>
  z.union(alternatives).describe(what);
const recordOf = <V extends z.core.SomeType>(what: string, value: V) =>
  z.record(z.string(), value).describe(what);
const parameters = (what: string) =>
  recordOf(
    `${what}: names and values, in which {name} is a variable`,
    either('a text or a number', [z.string(), z.number(), z.boolean()]),
  );
const statuses = (what: string) =>
  some(wholeNumber(100, 599, 'an HTTP status'), `${what}: a list such as [400, 401]`);
const flag = (what: string) => z.boolean().describe(`true or false (${what})`);
const quotaText = (example: string, scopes = '') =>
  matching(
    /^[1-9]\d{0,6}\/(?:s|min|h|d)(?: per (?:list|key))?$/,
    `a number of requests per s, min, h or d${scopes}, such as ${example}`,
  );
/** Words for error messages: the scopes that a limit may have. */
const SCOPES = ', per list or per key (the default)';
const header = z.strictObject({ header: text('the name of a header') });
const place = (what: string) =>
  either(`${what}: a JSON Pointer, {header: NAME} or {link: RELATION}`, [
    pointer(what),
    header,
    z.strictObject({ link: text('a relation of the Link header, such as next') }),
  ]);

const login = object('a login: path, body or form, token, life, refused, quota', {
  path: template('the path of the login'),
  body: z.json().describe('the JSON body, in which {name} is a variable').optional(),
  form: parameters('the form').optional(),
  token: pointer('the place of the token in the response'),
  life: object('the lifetime of a token: jwt, at, unit, default', {
    jwt: flag('the token is a JWT, and expires as its claim exp says').optional(),
    at: pointer('the place of the lifetime in the response').optional(),
    unit: oneOf(['ms', 's', 'min'], 'the unit of the lifetime').optional(),
    default: matching(
      /^[1-9]\d{0,6}(?:ms|s|min|h|d)$/,
      'the lifetime if the response has none, such as 30min',
    ).optional(),
  }).optional(),
  refused: statuses('the statuses that mean a wrong key').optional(),
  quota: quotaText('10/min').optional(),
});

const oauth2 = object(
  'OAuth2: token_url, grant_type, client_id, client_secret, refresh_token, scope, client_auth',
  {
    token_url: template('the address of the token endpoint, or its path'),
    grant_type: oneOf(['client_credentials', 'refresh_token'], 'a grant of OAuth2'),
    client_id: template('the client'),
    client_secret: template('the secret of the client').optional(),
    refresh_token: template('the first refresh token').optional(),
    scope: template('the scopes with spaces between them').optional(),
    client_auth: oneOf(['basic', 'body'], 'where client and secret are sent').optional(),
  },
);

const auth = either(
  'none, {bearer}, {basic}, {header, value}, {query, value}, {login} or {oauth2}',
  [
    z.literal('none'),
    z.strictObject({ bearer: template('the token') }),
    z.strictObject({
      basic: z
        .tuple([template('the user'), z.string().describe('the password, which may be empty')])
        .describe('[user, password]'),
    }),
    z.strictObject({ header: text('the name of a header'), value: template('its value') }),
    z.strictObject({ query: text('the name of a query parameter'), value: template('its value') }),
    z.strictObject({ login }),
    z.strictObject({ oauth2 }),
  ],
);

const quota = either(
  'a limit such as 100/min per list, or {limits, remaining, reset, retryAfter, free}',
  [
    quotaText('100/min per list', SCOPES),
    z.strictObject({
      limits: some(quotaText('5000/h per key', SCOPES), 'a list of limits'),
      remaining: header.describe('the number of requests that remain: {header}').optional(),
      reset: header
        .extend({
          unit: oneOf(['s', 'ms', 'epoch-s', 'epoch-ms', 'http-date'], 'the unit').optional(),
        })
        .describe('when the quota begins anew: {header, unit}')
        .optional(),
      retryAfter: header.describe('how long to wait: {header}').optional(),
      free: statuses('the statuses that cost no quota').optional(),
    }),
  ],
);

const times = either('iso, epoch-s, epoch-ms, http-date or {pattern, zone}', [
  z.enum(['iso', 'epoch-s', 'epoch-ms', 'http-date']),
  z.strictObject({
    pattern: matching(
      /^(?=.*yyyy)(?=.*MM)(?=.*dd)(?:yyyy|MM|dd|HH|mm|ss|SSS|'[^']*'|[^A-Za-z'])+$/,
      "a pattern of yyyy, MM, dd, HH, mm, ss and SSS such as yyyy-MM-dd.HH:mm:ss, other letters in '...'",
    ),
    zone: z.literal('UTC').describe('UTC'),
  }),
]);

const subject = object('a subject: at, fields, time, timeOf', {
  at: pointer('the object or the array that has the status').optional(),
  fields: some(text('a field name or a JSON Pointer'), 'a list of status fields such as [status]'),
  time: text('the field with the time of the change').optional(),
  timeOf: z
    .literal('new')
    .describe('new: `time` is the time of the change only in new elements')
    .optional(),
});

/**
 * Properties of a list in a description file, all optional. `list` contains the defaults of all lists; each entry of `lists` contains the
 * properties of one list.
 */
const listKeys = {
  path: template('the path after API_BASE_URL'),
  method: oneOf(['GET', 'POST'], 'the method'),
  body: z.json().describe('the JSON body, in which {name} is a variable'),
  query: parameters('the query parameters'),
  dates: parameters('the query parameters of a window of modification times'),
  limit: wholeNumber(1, 100_000, 'the greatest number of records in a page'),
  paging: oneOf(
    ['offset', 'page', 'after', 'cursor', 'link', 'none'],
    'how a request selects a page',
  ),
  first: wholeNumber(0, 1_000_000, 'the number of the first page'),
  records: pointer('the place of the records'),
  total: either('the number of records: a place, or a request {path, query, at}', [
    place('the number of records'),
    z.strictObject({
      path: template('the path of the request'),
      query: parameters('the query parameters').optional(),
      at: pointer('the place of the number of records'),
    }),
  ]),
  more: place('whether another page follows'),
  next: place('the cursor or the address of the next page'),
  reported: object('what a response states of its page: offset, limit', {
    offset: pointer('the offset of the first record').optional(),
    limit: pointer('the page size').optional(),
  }),
  ok: pointer('the value that is true unless the response reports an error'),
  key: keyFields('the key field, or several with + between them'),
  keys: some(
    keyFields('a field, or several with + between them'),
    'a list of candidates for the key',
  ),
  updated: either('the field with the modification time, or a list of fields', [
    text('a field'),
    some(text('a field'), 'a list of fields'),
  ]),
  created: text('the field with the time of creation'),
  one: object('how a single record is requested: path, query, record, gone, keys', {
    path: template('the path of a single record').optional(),
    query: parameters('the query parameters').optional(),
    record: pointer('the place of the record').optional(),
    gone: statuses('the statuses that mean that the record does not exist').optional(),
    keys: z
      .literal('digits')
      .describe('digits: only keys that consist of digits can be requested')
      .optional(),
  }),
  deleted: object('how a response shows a deleted record: {at, is}', {
    at: pointer('the place of the mark in a record'),
    is: either('a value', [z.string(), z.number(), z.boolean(), z.null()]),
  }),
  arrays: recordOf(
    'names of arrays, each with the field that identifies its elements, such as {lines: id}',
    text('the field that identifies an element'),
  ),
  statuses: object('status fields: topic, schema, subjects', {
    topic: name('the topic after TOPIC_PREFIX').optional(),
    schema: text('an .avsc file beside this one').optional(),
    subjects: recordOf('the subjects by name', subject),
  }),
  types: text('an .avsc file beside this one with the documented fields'),
  quota: quotaText('100/min'),
  agreed: flag('a record absent from two full scans that read the same keys counts as deleted'),
};

/**
 * Names of the claims: statements of a list's description that `check --measure` can refute. All but `order` are names of properties.
 * `order`: unchanged records are in the same order in every response.
 */
export const CLAIMS = [
  ...(['key', 'order', 'limit', 'paging', 'more'] as const),
  ...(['total', 'dates', 'updated', 'one'] as const),
] as const;
/** Name of a claim: a statement of a list's description that `check --measure` can refute. */
export type Claim = (typeof CLAIMS)[number];

const claims = z
  .array(oneOf(CLAIMS, 'a claim'))
  .describe('names of claims of the description of a list, such as [key, limit]');

/** Zod schema of the result of `check --measure`. The command's YAML output and a description file have it as the property `measured`. */
export const measuredFormat = object('the result of check --measure: date, lists', {
  date: matching(/^\d{4}-\d\d-\d\d$/, 'the day of the measurement, such as 2026-05-01'),
  lists: recordOf(
    'the measured lists by name',
    object('the claims of the description of a list that were refuted, and those that were not', {
      refuted: claims.optional(),
      notRefuted: claims.optional(),
    }),
  ),
});

/** Result of `check --measure`: its date and, for each list, the claims of the description that were refuted and those that were not. */
export type Measured = z.output<typeof measuredFormat>;

const list = z.strictObject(listKeys).partial().describe(`keys of a list`);

/** Zod schema of a description file, which says how an API is requested and how its responses are read. */
export const descriptionFormat = object('a description: format, api, auth, quota, lists, ...', {
  format: z.literal(1).describe('1'),
  api: name('the name of the API'),
  namespace: matching(
    /^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$/,
    'the namespace of Avro schemas, such as org.shop',
  ).optional(),
  parameters: some(
    matching(/^[a-z][a-z0-9_]*$/, 'a name such as shop'),
    'a list of parameters, such as [shop]',
  ).optional(),
  headers: parameters('headers of every request').optional(),
  times: times.optional(),
  errors: z
    .record(
      matching(/^[1-5]\d\d$/, 'an HTTP status'),
      oneOf(['retry', 'quota', 'token', 'final'], 'the meaning of a status'),
    )
    .describe('statuses and what they mean')
    .optional(),
  auth,
  quota,
  list: list.describe('defaults of all lists').optional(),
  lists: z.record(name('the name of a list'), list).describe('the lists by name'),
  measured: measuredFormat.optional(),
});

/** The content of a description file. */
export type DescriptionFile = z.output<typeof descriptionFormat>;
/** Properties of a list in a description file: the content of `list` or of an entry of `lists`. */
export type ListFile = z.output<typeof list>;

/** Wrong descriptions: a text of shop.yaml, what replaces it, and the lines of the error after the name of the file. */
export const MISTAKES: readonly (readonly [before: string, after: string, ...lines: string[]])[] = [
  [
    'limit: 250',
    'limit: 20',
    '12:12 lists.orders.limit is 20, but pages overlap by up to 20 records: the least is 21',
  ],
  ['format: 1', 'format: 2', '1:9 format: expected 1, found 2'],
  ['format: 1\n', '', '1:1 format is missing; expected 1'],
  [
    'api: shop',
    'api: Shop',
    '2:6 api: expected the name of the API: letters a to z, digits, -, found "Shop"',
  ],
  [
    'api: shop\n',
    '',
    '1:1 api is missing; expected the name of the API: letters a to z, digits, -',
  ],
  [
    'api: shop',
    'api: shop\nnamespace: 1a',
    '3:12 namespace: expected the namespace of Avro schemas, such as org.shop, found "1a"',
  ],
  [
    'parameters: [shop]',
    'parameters: shop',
    '3:13 parameters: expected a list of parameters, such as [shop], found "shop"',
  ],
  [
    'parameters: [shop]',
    'parameters: [shop, region]',
    '3:20 parameters.1: no text of the description contains {region}: remove this parameter, or correct its name',
  ],
  [
    'parameters: [shop]\n',
    '',
    '7:11 lists.orders.path: {shop} is not a variable here; use offset, limit, from, to',
    '17:18 lists.orders.one.path: {shop} is not a variable here; use key',
    '24:11 lists.customers.path: {shop} is not a variable here; use cursor, limit',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: nobody',
    '4:7 auth: expected none, {bearer}, {basic}, {header, value}, {query, value}, {login} or {oauth2}, found "nobody"',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { bearr: '{api_key}' }",
    '4:7 auth: expected none, {bearer}, {basic}, {header, value}, {query, value}, {login} or {oauth2}, found {bearr}',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { bearer: '{apikey}' }",
    '4:17 auth.bearer: {apikey} is not a variable here; use api_key, username, password, client_id, client_secret, refresh_token or the parameter shop',
  ],
  [
    'api: shop',
    'api: shop\nheaders: { Accept: "a\\nb", Transfer-Encoding: chunked, "x y": 1, X-Ok: yes }',
    '3:20 headers.Accept has a line break, or another character that the value of a header must not contain: remove it',
    '3:47 headers.Transfer-Encoding is set by the HTTP client: leave it out',
    '3:63 headers.x y is not a valid name of a header: use letters, digits and hyphens',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { header: 'x:y', value: '{api_key}' }",
    '4:17 auth.header is not a valid name of a header: use letters, digits and hyphens',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { header: X-Key, value: "{api_key}\\n" }',
    '4:31 auth.value has a line break, or another character that the value of a header must not contain: remove it',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth:\n  bearer: |\n    {api_key}',
    '5:11 auth.bearer has a line break, or another character that the value of a header must not contain: remove it',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { bearer: 5 }',
    '4:17 auth.bearer: expected the token, in which {name} is a variable, found 5',
  ],
  [
    "auth: { bearer: '{api_key}' }\n",
    '',
    '1:1 auth is missing; expected none, {bearer}, {basic}, {header, value}, {query, value}, {login} or {oauth2}',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { header: X-Key }',
    '4:1 auth.value is missing; expected its value, in which {name} is a variable',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { basic: ['{username}'] }",
    '4:16 auth.basic: expected [user, password], found a list',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { login: { path: /login, token: /t } }',
    '4:9 auth.login needs either `body` or `form`',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { login: { path: /login, body: {}, form: {}, token: /t } }',
    '4:9 auth.login needs either `body` or `form`',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { login: { path: /login, body: { key: '{api_key}' } } }",
    '4:9 auth.login.token is missing; expected the place of the token in the response, a JSON Pointer such as /data',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { login: { path: /login, body: {}, token: /t, life: { at: /e } } }',
    '4:53 auth.login.life needs `unit` (for example s): without it the unit of the number with which the response gives the lifetime of the token is not known',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    'auth: { login: { path: /login, body: {}, token: /t, life: { default: 30 minutes } } }',
    '4:70 auth.login.life.default: expected the lifetime if the response has none, such as 30min, found "30 minutes"',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { oauth2: { token_url: /t, grant_type: password, client_id: '{client_id}' } }",
    '4:46 auth.oauth2.grant_type: expected a grant of OAuth2: client_credentials, refresh_token, found "password"',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { oauth2: { token_url: /t, grant_type: client_credentials, client_id: '{client_id}' } }",
    '4:9 auth.oauth2: client_credentials needs `client_secret`',
  ],
  [
    "auth: { bearer: '{api_key}' }",
    "auth: { oauth2: { token_url: /t, grant_type: refresh_token, client_id: '{client_id}' } }",
    '4:9 auth.oauth2: refresh_token needs `refresh_token`',
  ],
  [
    'quota: 2/s per key',
    'quota: 2',
    '5:8 quota: expected a limit such as 100/min per list, or {limits, remaining, reset, retryAfter, free}, found 2',
  ],
  [
    'quota: 2/s per key\n',
    '',
    '1:1 quota is missing; expected a limit such as 100/min per list, or {limits, remaining, reset, retryAfter, free}',
  ],
  [
    'quota: 2/s per key',
    'quota: { limits: [5 per hour] }',
    '5:19 quota.limits.0: expected a number of requests per s, min, h or d, per list or per key (the default), such as 5000/h per key, found "5 per hour"',
  ],
  [
    'quota: 2/s per key',
    'quota: { limits: [5/h per key], remain: { header: X } }',
    '5:33 quota.remain is not a property here; use one of limits, remaining, reset, retryAfter, free',
  ],
  [
    'quota: 2/s per key',
    'quota: { limits: [2/s per key, 30/d] }',
    '5:32 quota.limits.1: 30/d is less than one request a minute, the lowest rate that can be kept; give 60/h or 1440/d at least',
  ],
  [
    'quota: 2/s per key',
    'quota: 2/s\nlist: { quota: 5/s per key }',
    '6:16 list.quota is the quota of a single list, but "per key" means all lists of an API key together: remove "per key"',
  ],
  [
    'quota: 2/s per key',
    'quota: { limits: [5/s per key], remaining: /left }',
    '5:44 quota.remaining: expected the number of requests that remain: {header}, found "/left"',
  ],
  [
    'quota: 2/s per key',
    'quota: 2/s per key\ntimes: unix',
    '6:8 times: expected iso, epoch-s, epoch-ms, http-date or {pattern, zone}, found "unix"',
  ],
  [
    'quota: 2/s per key',
    'quota: 2/s per key\ntimes: { pattern: YYYY-MM-DD, zone: UTC }',
    '6:19 times.pattern: expected a pattern of yyyy, MM, dd, HH, mm, ss and SSS such as yyyy-MM-dd.HH:mm:ss, other letters in \'...\', found "YYYY-MM-DD"',
  ],
  [
    'quota: 2/s per key',
    'quota: 2/s per key\nerrors: { 403: wait }',
    '6:16 errors.403: expected the meaning of a status: retry, quota, token, final, found "wait"',
  ],
  [
    'quota: 2/s per key',
    'quota: 2/s per key\nerrors: { 4xx: retry }',
    '6:11 errors.4xx: expected an HTTP status, found "4xx"',
  ],
  [
    'quota: 2/s per key',
    "quota: 2/s per key\nheaders: { X-Page: '{page}' }",
    '6:20 headers.X-Page: {page} is not a variable here; use the parameter shop',
  ],
  [
    '  orders:',
    '  Orders:',
    '7:3 lists.Orders: expected the name of a list: letters a to z, digits, -, found "Orders"',
  ],
  [
    '  customers:',
    '  ledger:',
    '24:3 lists.ledger: the service has a topic of that name; choose another',
  ],
  [
    '  customers:',
    '  registry:',
    '24:3 lists.registry: metrics and the status page use that name; choose another',
  ],
  [
    '  customers:',
    '  orders-status-changes:',
    '20:5 lists.orders.statuses: lists.orders-status-changes has a topic of that name; choose another',
  ],
  [
    '    path: /shops/{shop}/orders\n',
    '',
    '7:3 lists.orders needs `path`, the path of the list after API_BASE_URL',
  ],
  [
    'path: /shops/{shop}/orders',
    'path: /shops/{store}/orders',
    '8:11 lists.orders.path: {store} is not a variable here; use offset, limit, from, to or the parameter shop',
  ],
  [
    'paging: offset',
    'paging: offsets',
    '9:13 lists.orders.paging: expected how a request selects a page: offset, page, after, cursor, link, none, found "offsets"',
  ],
  [
    '    paging: offset\n',
    '',
    '7:3 lists.orders needs `paging`: offset, page, after, cursor, link or none',
  ],
  [
    'paging: offset',
    'paging: page',
    '9:13 lists.orders.paging is page, but no parameter sends {page}',
    '10:22 lists.orders.query.offset: {offset} is not a variable here; use page, limit, from, to or the parameter shop',
  ],
  [
    "'{offset}'",
    "'{offfset}'",
    '9:13 lists.orders.paging is offset, but no parameter sends {offset}',
    '10:22 lists.orders.query.offset: {offfset} is not a variable here; use offset, limit, from, to or the parameter shop',
  ],
  [
    "offset: '{offset}', ",
    '',
    '9:13 lists.orders.paging is offset, but no parameter sends {offset}',
  ],
  [
    '    limit: 250\n',
    '',
    '7:3 lists.orders needs `limit`, the greatest page size: a parameter sends {limit}',
  ],
  [
    'limit: 250',
    "limit: '250'",
    '12:12 lists.orders.limit: expected the greatest number of records in a page, a whole number from 1 to 100000, found "250"',
  ],
  [
    'records: /orders',
    'records: orders',
    '13:14 lists.orders.records: expected the place of the records, a JSON Pointer such as /data, found "orders"',
  ],
  [
    '    records: /orders\n',
    '',
    "7:3 lists.orders needs `records`, the place of the records: a JSON Pointer, or '' for the whole body",
  ],
  [
    '    total: /count\n',
    '',
    '7:3 lists.orders: nothing says where the list ends: give `more`, `next` or `total` (a short page is no end: many servers cap the page size)',
  ],
  [
    'total: /count',
    'total: count',
    '14:12 lists.orders.total: expected the number of records, a JSON Pointer such as /data, found "count"',
  ],
  [
    'total: /count',
    "total: { path: '/count/{key}', at: '' }",
    '14:20 lists.orders.total.path: {key} is not a variable here; use from, to or the parameter shop',
  ],
  [
    'total: /count',
    'total: /count\n    body: { q: 1 }',
    '15:5 lists.orders.body: a GET has no body; add method: POST',
  ],
  [
    '    key: id\n',
    '',
    '7:3 lists.orders needs `key`, the field that identifies a record (or `keys`: candidates for it)',
  ],
  [
    'key: id',
    'key: id\n    keys: [a]',
    '16:5 lists.orders.keys is set together with `key`: remove one of them',
  ],
  [
    '    updated: updated_at\n',
    '',
    "11:5 lists.orders.dates needs `updated`: the records' own modification times say where the next window begins",
  ],
  ["since: '{from}'", "since: 'now'", '11:5 lists.orders.dates: no parameter sends {from}'],
  [
    "since: '{from}'",
    "since: '{form}'",
    '11:5 lists.orders.dates: no parameter sends {from}',
    '11:21 lists.orders.dates.since: {form} is not a variable here; use from, to or the parameter shop',
  ],
  [
    "since: '{from}'",
    "sort: '{from}'",
    '11:14 lists.orders.dates.sort is a parameter that `query` sends too: remove it from `dates` or from `query`',
  ],
  ["orders/{key}'", "orders'", '18:5 lists.orders.one sends no {key}'],
  [
    'gone: [404, 410]',
    'gone: 404',
    '18:70 lists.orders.one.gone: expected the statuses that mean that the record does not exist: a list such as [400, 401], found 404',
  ],
  [
    'gone: [404, 410]',
    'gone: [4040]',
    '18:71 lists.orders.one.gone.0: expected an HTTP status, a whole number from 100 to 599, found 4040',
  ],
  [
    'arrays: { fulfillments: id }',
    'arrays: [fulfillments]',
    '19:13 lists.orders.arrays: expected names of arrays, each with the field that identifies its elements, such as {lines: id}, found a list',
  ],
  [
    'fields: [state], time: updated_at',
    'fields: [state]',
    '23:60 lists.orders.statuses.subjects.fulfillment.timeOf needs `time`, the field with the time of the change',
  ],
  [
    'fields: [state]',
    'fields: []',
    '23:51 lists.orders.statuses.subjects.fulfillment.fields is empty; expected a list of status fields such as [status]',
  ],
  [
    'fields: [state]',
    'field: [state]',
    '23:9 lists.orders.statuses.subjects.fulfillment.fields is missing; expected a list of status fields such as [status]',
    '23:43 lists.orders.statuses.subjects.fulfillment.field is not a property here; use one of at, fields, time, timeOf',
  ],
  [
    'at: /fulfillments',
    'at: fulfillments',
    '23:28 lists.orders.statuses.subjects.fulfillment.at: expected the object or the array that has the status, a JSON Pointer such as /data, found "fulfillments"',
  ],
  [
    'timeOf: new',
    'timeOf: old',
    '23:86 lists.orders.statuses.subjects.fulfillment.timeOf: expected new: `time` is the time of the change only in new elements, found "old"',
  ],
  [
    '    next: /next_cursor\n',
    '',
    '24:3 lists.customers needs `next`, the place of the next page: paging is cursor',
  ],
  [
    "cursor: '{cursor}'",
    "cursor: '{after}'",
    '26:13 lists.customers.paging is cursor, but no parameter sends {cursor}',
    '27:22 lists.customers.query.cursor: {after} is not a variable here; use cursor, limit or the parameter shop',
  ],
  [
    'paging: cursor\n',
    'paging: cursor\n    first: 0\n',
    '27:5 lists.customers.first: paging is cursor; only page has a first page number',
  ],
  [
    'keys: [id, tenant+number]',
    'types: ./none.avsc\n    key: id',
    "30:12 lists.customers.types: ./none.avsc (path relative to the description) can't be read as an Avro schema: ENOENT",
  ],
  [
    'paging: cursor',
    ' paging: cursor',
    '25:11 Nested mappings are not allowed in compact mappings',
  ],
  ['  customers:', '  orders:', '24:3 Map keys must be unique'],
  [
    "query: { cursor: '{cursor}' }",
    "query: { cursor: '{cursor}' ",
    '28:5 Flow map in block collection must be sufficiently indented and end with a }',
  ],
  [
    'key: id',
    'key: id\n    qeury: {}',
    '16:5 lists.orders.qeury is not a property here; use one of path, method, body, query, dates, limit, paging, first, records, total, more, next, reported, ok, key, keys, updated, created, one, deleted, arrays, statuses, types, quota, agreed',
  ],
  [
    '    path: /shops/{shop}/customers',
    '    path: 5',
    '25:11 lists.customers.path: expected the path after API_BASE_URL, in which {name} is a variable, found 5',
  ],
  [
    '    statuses:\n',
    '    statuses:\n      schema: ../../src/description/wine/order-status-change.avsc\n',
    '21:15 lists.orders.statuses.schema: these fields are missing, unknown or of the wrong type: order_number; the schema of status changes has the fields event_id, key, subject, subject_id, field, from, to, changed_at, observed_at, where the key field of the list, of the type ["null", "long"], may stand in place of `key`',
  ],
  [
    '    statuses:\n',
    '    statuses:\n      schema: ../../src/schemas/events/dead-letter.avsc\n',
    '21:15 lists.orders.statuses.schema: these fields are missing, unknown or of the wrong type: event_id, subject, subject_id, field, from, to, changed_at, resource, reason, message, raw, offset, sha256, length, part, parts; the schema of status changes has the fields event_id, key, subject, subject_id, field, from, to, changed_at, observed_at, where the key field of the list, of the type ["null", "long"], may stand in place of `key`',
  ],
];

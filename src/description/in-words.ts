// A description in words: the requests that would be sent, the proofs that are possible, and what is not promised.

import { parameterSetting } from './checks.ts';
import { statusFieldName } from './description.ts';
import type { ApiDescription, ListDescription, StatusTableSubject } from './description.ts';
import { canProveAbsence, levelsInWords, needsKeyOrder, possibleLevels } from './levels.ts';
import { filled, filledBody, filledParameters, variablesIn } from './template.ts';
import type { Parameters, Variables } from './template.ts';

/** Returns a summary of the description in words, as lines of text. */
export function descriptionInWords(description: ApiDescription): string[] {
  const { api, namespace, parameters, lists } = description;
  const settings = parameters.map(parameterSetting).join(', ');
  return [
    `API             ${api}, ${lists.length} ${lists.length === 1 ? 'list' : 'lists'}`,
    `login           ${authInWords(description.auth)}`,
    `quota           ${quotaInWords(description.quota)}`,
    `topics          ${api}.<list> (TOPIC_PREFIX replaces ${api}), Avro namespace ${namespace}`,
    ...texts(settings !== '' && `parameters      ${settings}`),
    ...lists.flatMap((list) => ['', ...listInWords(list, parameters)]),
  ];
}

function authInWords(auth: ApiDescription['auth']): string {
  if (auth === 'none') return 'none';
  if ('login' in auth) return `POST ${auth.login.path}, for a token`;
  if ('oauth2' in auth) return `OAuth2 ${auth.oauth2.grant_type} at ${auth.oauth2.token_url}`;
  if ('bearer' in auth) return `Authorization: Bearer ${withoutSecret(auth.bearer)}`;
  if ('basic' in auth) return `Authorization: Basic ${auth.basic.map(withoutSecret).join(':')}`;
  const value = withoutSecret(auth.value);
  return 'header' in auth ? `${auth.header}: ${value}` : `?${auth.query}=${value}`;
}

/** Returns a value of `auth` for display: unchanged if it contains a variable, such as `{api_key}`; otherwise `[redacted]`. */
function withoutSecret(template: string): string {
  return variablesIn(template).length > 0 ? template : '[redacted]';
}

function quotaInWords(quota: ApiDescription['quota']): string {
  return typeof quota === 'string' ? quota : quota.limits.join(', ');
}

function listInWords(list: ListDescription, parameters: readonly string[]): string[] {
  const { name, method, path, query, body, dates, one, statuses, types } = list;
  const settings = Object.fromEntries(parameters.map((each) => [each, `{${each}}`]));
  const page = { offset: 0, page: list.first, limit: list.limit, ...settings };
  const window = { ...page, from: 'FROM', to: 'TO' };
  const single = { key: 'KEY', ...settings };
  const keys = list.keyCandidates.map((fields) => fields.join('+')).join(', ');
  const isOneKey = list.keyCandidates.length === 1;
  const subjects = statuses?.subjects.map(subjectInWords).join('; ');
  const rows: (readonly [label: string, text: string | undefined])[] = [
    ['page', requestInWords(method, path, query, page)],
    ['body', body === undefined ? undefined : JSON.stringify(filledBody(body, page))],
    ['window', dates && requestInWords(method, path, { ...query, ...dates }, window)],
    ['single record', one && requestInWords('GET', one.path, one.query, single)],
    ['records', `${pointerInWords(list.records)}; ${endInWords(list)}`],
    ['reported', list.reported && reportedInWords(list.reported)],
    ['key', isOneKey ? keys : `the first of these that identifies records: ${keys}`],
    ['times', timesInWords(list.updated, list.created)],
    ['statuses', statuses && `topic ${statuses.topic}: ${subjects}`],
    ['types', types ? `documented (${types.fields.length} fields)` : 'learned from the records'],
    ['proofs', levelsInWords(list).join(', ')],
    ['deletions', deletionsInWords(list)],
    ...notPromised(list).map((text) => ['not promised', text] as const),
  ];
  const shown = rows.flatMap(([label, text]) =>
    text === undefined ? [] : [`  ${label.padEnd(14)}${text}`],
  );
  return [name, ...shown];
}

function requestInWords(
  method: string,
  path: string,
  query: Parameters,
  variables: Variables,
): string {
  const parameters = filledParameters(query, variables).map((each) => each.join('='));
  const address = filled(path, variables) ?? path;
  return `${method} ${address}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`;
}

function pointerInWords(pointer: string): string {
  return pointer === '' ? 'the whole body' : pointer;
}

function placeInWords(place: NonNullable<ListDescription['more']>): string {
  if (typeof place === 'string') return pointerInWords(place);
  return 'header' in place ? `the header ${place.header}` : `the Link header's ${place.link}`;
}

function endInWords({ more, next, total, paging }: ListDescription): string {
  if (paging === 'none') return 'one response is the list';
  const isByNext = paging === 'cursor' || paging === 'link';
  const ends = texts(
    more !== undefined && `${placeInWords(more)} reports no further page`,
    next !== undefined && `${placeInWords(next)} shows no next page`,
    // Neither ends a list: a total in paging by keys, and a total that takes a separate request.
    total !== undefined &&
      paging !== 'after' &&
      !(typeof total === 'object' && 'path' in total) &&
      `as many records were read as ${placeInWords(total)} reports`,
    paging === 'after' && more === undefined && 'a page has no new record',
    isByNext ? 'a page is empty and shows no other next page' : 'a page is empty',
  );
  return `the list ends when ${ends.join(', or ')}`;
}

function reportedInWords({ offset, limit }: NonNullable<ListDescription['reported']>): string {
  return texts(
    offset !== undefined && `${offset} is the offset of a page`,
    limit !== undefined && `${limit} its size`,
  ).join(', ');
}

function timesInWords(updated: readonly string[], created: string | undefined): string {
  return [
    updated.length > 0 ? `modified ${updated.join(' or ')}` : 'no modification time',
    created === undefined ? 'no time of creation' : `created ${created}`,
  ].join(', ');
}

function subjectInWords({ name, fields }: StatusTableSubject): string {
  return `${name} (${fields.map(statusFieldName).join(', ')})`;
}

function deletionsInWords(list: ListDescription): string {
  const { deleted, one } = list;
  const ways = texts(
    deleted && `a read shows ${deleted.at} as ${JSON.stringify(deleted.is)}`,
    one
      ? 'a full scan does not show the record, and two single reads find none'
      : absenceInWords(list),
  );
  return ways.length > 0 ? ways.join(', or ') : 'none is published';
}

/** Describes in words how full scans prove that a record was deleted. Undefined if they can't prove it. */
function absenceInWords(list: ListDescription): string | undefined {
  if (possibleLevels(list)[0] === 'agreed') {
    return 'a record is absent from two full scans that read the same keys (agreed: true)';
  }
  if (!canProveAbsence(list)) return undefined;
  const condition = canProveAbsence(list, false) ? '' : ' of a list that is sorted by its key';
  return `a record is absent from two full scans${condition}`;
}

/** Returns the guarantees that the service can't give for a list with these properties, each as a statement in words. */
function notPromised(list: ListDescription): string[] {
  const levels = possibleLevels(list);
  const isUnproven = levels[0] === 'read' || levels[0] === 'agreed';
  const needsOrder = needsKeyOrder(list) && !levels.includes('counted');
  const moved =
    'a record that moves between pages while they are read can be missed until the next full scan';
  return texts(
    isUnproven && moved,
    needsOrder && `unless the list is sorted by its key, ${moved}`,
    !list.dates &&
      'changes are found by full scans alone, so states between two of them are not seen',
    list.updated.length === 0 &&
      'a response from a lagging replica cannot be distinguished from a change',
  );
}

/** Returns the arguments that are strings, and drops `false` and undefined, so that callers can write `condition && 'text'`. */
function texts(...values: readonly (string | false | undefined)[]): string[] {
  return values.filter((value) => typeof value === 'string');
}

import { filter, map, of, repeat, take, throwError, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { hiddenNames } from '../account/personal-fields-of.ts';
import type { ListDescription } from '../description/description.ts';
import { isJsonObject } from '../schemas/json/json.ts';
import type { KeyFormat } from '../schemas/events/record-key.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { keyFieldsSetting } from '../config/settings.ts';
import { chooseKeyFields, fieldNames } from '../streams/records/records.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { Answer } from '../streams/decode/response.ts';

/** The fields that form the keys of a resource's records, and how they were chosen. */
export interface ChosenKey {
  readonly keyFields: readonly string[];
  /**
   * Whether the key fields were chosen by the setting `KEY_FIELDS_*` or from the first page. False if published events or the API's
   * description name them.
   */
  readonly isNew: boolean;
  /**
   * Server time, in epoch ms, of the first response with a `Date` header in which the list was still empty. Null if there was no such
   * response.
   */
  readonly beganAt: number | null;
  /**
   * Whether the list had no records when its first page was requested for the first time. If so, all its records were created later. False
   * if no page was requested.
   */
  readonly wasEmpty: boolean;
}

export interface ChooseKeyOptions {
  readonly list: ListDescription;
  readonly config: Pick<Config, 'keyFields' | 'keyFormat' | 'pii'>;
  /** Key fields of the published events; null until the key fields were first committed with the cursor. */
  readonly publishedKeyFields: readonly string[] | null;
  /** Format of the keys of the published events. Default `text`. */
  readonly publishedFormat?: KeyFormat | undefined;
  /** Emits the first page of the list. Each subscription requests the page anew. */
  readonly firstPage: Observable<Answer>;
  /** Pause before the first page of an empty list is requested again, in ms. */
  readonly pauseMs: number;
  readonly topic: string;
  readonly scheduler: SchedulerLike;
}

/**
 * Chooses the key fields of a resource. Uses the first of these that exists:
 *
 * - The key fields of the resource's published events.
 * - The only key candidate of the API's description, unless the setting `KEY_FIELDS_*` names other fields.
 * - The fields that {@link keyFieldsOf} chooses from the list's first page, which is requested until it has records.
 *
 * Emits once and completes.
 *
 * @throws CellarstreamError `KEY_FIELDS`, as an error of the stream: if no key fits the records; if `KEY_FIELDS_*` or `KEY_FORMAT` differs
 * from the published keys; or if a `PII_` setting hides a field of the published keys.
 */
export function chooseKey(options: ChooseKeyOptions): Observable<ChosenKey> {
  const { list, config, publishedKeyFields, firstPage, pauseMs, topic, scheduler } = options;
  const { publishedFormat = 'text' } = options;
  const { name: resource } = list;
  const set = config.keyFields[resource];
  const refused = (message: string) =>
    throwError(
      () => new CellarstreamError('KEY_FIELDS', `${message}, or set another TOPIC_PREFIX`),
    );
  if (publishedKeyFields && set && set.join() !== publishedKeyFields.join())
    return refused(
      `${keyFieldsSetting(resource)} is ${set.join()}, but the events in ${topic} are keyed by ${publishedKeyFields.join()}: unset ${keyFieldsSetting(resource)}`,
    );
  if (publishedKeyFields && publishedFormat !== config.keyFormat)
    return refused(
      `KEY_FORMAT is ${config.keyFormat}, but the keys in ${topic} are written as ${publishedFormat}: set KEY_FORMAT to ${publishedFormat}`,
    );
  const hidden = hiddenNames(config.pii, resource);
  const hiddenKeyFields = publishedKeyFields?.filter((field) => hidden.has(field)) ?? [];
  if (hiddenKeyFields.length > 0)
    return refused(
      `the events in ${topic} are keyed by ${hiddenKeyFields.join()}, a field that PII_DROP, PII_MASK or PII_HMAC hides: remove the field from these settings`,
    );
  const documented = documentedKey(list);
  const isSetOtherwise = set !== undefined && set.join() !== documented?.join();
  const known = publishedKeyFields ?? (isSetOtherwise ? undefined : documented);
  if (known) return of({ keyFields: known, isNew: false, beganAt: null, wasEmpty: false });

  let beganAt: number | null = null;
  let wasEmpty = false;
  return firstPage.pipe(
    map(({ data, serverTime }): ChosenKey | undefined => {
      const records = data.map(({ json }) => json);
      const keyFields = keyFieldsOf(list, config, records);
      if (keyFields) return { keyFields, isNew: true, beganAt, wasEmpty };
      beganAt ??= serverTime ?? null;
      wasEmpty = true;
      return undefined;
    }),
    repeat({ delay: () => timer(pauseMs, scheduler) }),
    filter((chosen) => chosen !== undefined),
    take(1),
  );
}

/**
 * Returns the fields that form the keys of the records in `data`:
 *
 * - If the setting `KEY_FIELDS_*` is set: the fields of the setting.
 * - Otherwise, if the description has only one key candidate: that candidate, without a check.
 * - Otherwise: the first candidate that {@link chooseKeyFields} finds suitable.
 *
 * Undefined if `data` has no records to check the fields with.
 *
 * @throws CellarstreamError `KEY_FIELDS` if no record has the fields of the setting, no candidate is suitable, or the elements of `data`
 * are not objects.
 */
export function keyFieldsOf(
  list: ListDescription,
  { keyFields, pii }: Pick<Config, 'keyFields' | 'pii'>,
  data: readonly JsonValue[],
): readonly string[] | undefined {
  const { name: resource, keyCandidates } = list;
  const set = keyFields[resource];
  const records = data.filter(isJsonObject);
  const setting = keyFieldsSetting(resource);
  const known = documentedKey(list);
  if (data.length > 0 && records.length === 0 && !known)
    throw new CellarstreamError(
      'KEY_FIELDS',
      `no element of the first page of ${resource} is a JSON object: correct \`records\` of this list in the description, the place of the records in a response`,
    );
  if (set) {
    if (records.length === 0) return undefined;
    // Records without these fields become dead letters, but at least one record must have them.
    const keyOf = keyOfFields(set);
    if (records.some((record) => keyOf(record) !== undefined)) return set;
    const message = `${setting} is ${set.join()}, which no record of the first page has`;
    throw noKeyError(message, fieldNames(records));
  }
  if (known) return known;
  const hidden = hiddenNames(pii, resource);
  const isFree = (fields: readonly string[]) => !fields.some((field) => hidden.has(field));
  const choice = chooseKeyFields(data, keyCandidates.filter(isFree));
  if (!choice) return undefined;
  if (choice.fields) return choice.fields;
  const tried = keyCandidates.map((fields) => fields.join('+')).join(', ');
  const advice = `set ${setting} to the field that identifies a record, or to several fields separated by commas`;
  const notFree = keyCandidates.flat().filter((field) => hidden.has(field));
  const but = notFree.length > 0 ? ` (the PII_ settings hide ${notFree.join(', ')})` : '';
  throw noKeyError(`none of ${tried} is the key of ${resource}${but}: ${advice}`, choice.seen);
}

/** Returns the list's key fields if the API's description names them: then they are the only candidate. */
function documentedKey({ keyCandidates }: ListDescription): readonly string[] | undefined {
  return keyCandidates.length === 1 ? keyCandidates[0] : undefined;
}

function noKeyError(message: string, seen: readonly string[]): CellarstreamError {
  const names = seen.slice(0, 50).join(', ') + (seen.length > 50 ? ', ...' : '');
  return new CellarstreamError('KEY_FIELDS', `${message}; fields seen: ${names}`);
}

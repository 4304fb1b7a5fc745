import { filter, map, of, repeat, take, throwError, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Config } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { hiddenNames } from '../account/personal-fields-of.ts';
import type { ResourceRules } from '../resources/resources.ts';
import { isJsonObject } from '../schemas/json/json.ts';
import type { KeyFormat } from '../schemas/events/record-key.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { keyFieldsSetting } from '../config/settings.ts';
import { chooseKeyFields, fieldNames } from '../streams/records/records.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import type { Answer } from '../streams/decode/answer.ts';

/** What a resource's keys are made of. */
export interface ChosenKey {
  readonly keyFields: readonly string[];
  /** Whether it was found out just now. */
  readonly isNew: boolean;
  /** The server's time at the first look at a list that was empty then; else null. */
  readonly beganAt: number | null;
  /** Whether the list was empty at the first look: all that is in it now has come since. */
  readonly wasEmpty: boolean;
}

export interface ChooseKeyOptions {
  readonly rules: ResourceRules;
  readonly config: Pick<Config, 'keyFields' | 'keyFormat' | 'pii'>;
  /** What the events are keyed by that are published already; null when there are none. */
  readonly published: readonly string[] | null;
  /** How those keys are written. Default `text`. */
  readonly publishedFormat?: KeyFormat | undefined;
  /** Asks for the first page. */
  readonly firstPage: Observable<Answer>;
  /** How long to wait before an empty list is looked at again, ms. */
  readonly pauseMs: number;
  readonly topic: string;
  readonly scheduler: SchedulerLike;
}

/**
 * What a resource's keys are made of: what its published events are keyed by; else what
 * {@link keyFieldsOf} says of the first page. An empty list is looked at again until it is no longer
 * empty. Emits once and completes.
 *
 * @throws CellarstreamError `KEY_FIELDS` when nothing fits, or when the setting is another than what
 * is published, `KEY_FORMAT` too: keys never change silently. Also when what is published is keyed by a field that is
 * now to be hidden.
 */
export function chooseKey(options: ChooseKeyOptions): Observable<ChosenKey> {
  const { rules, config, published, firstPage, pauseMs, topic, scheduler } = options;
  const { publishedFormat = 'text' } = options;
  const { resource } = rules;
  const set = config.keyFields[resource];
  if (published && set && set.join() !== published.join()) {
    const message = `${keyFieldsSetting(resource)} is ${set.join()}, but the events in ${topic} are keyed by ${published.join()}: unset it, or set another TOPIC_PREFIX`;
    return throwError(() => new CellarstreamError('KEY_FIELDS', message));
  }
  if (published && publishedFormat !== config.keyFormat) {
    const message = `KEY_FORMAT is ${config.keyFormat}, but the keys in ${topic} are written as ${publishedFormat}: set that, or another TOPIC_PREFIX`;
    return throwError(() => new CellarstreamError('KEY_FIELDS', message));
  }
  const hidden = hiddenNames(config.pii, resource);
  const lost = published?.filter((field) => hidden.has(field)) ?? [];
  if (lost.length > 0) {
    const message = `the events in ${topic} are keyed by ${lost.join()}, which the PII_ settings name: remove the field from them, or set another TOPIC_PREFIX`;
    return throwError(() => new CellarstreamError('KEY_FIELDS', message));
  }
  const known = published ?? certain(rules);
  if (known) return of({ keyFields: known, isNew: false, beganAt: null, wasEmpty: false });

  let beganAt: number | null = null;
  let wasEmpty = false;
  return firstPage.pipe(
    map(({ data, serverTime }): ChosenKey | undefined => {
      const keyFields = keyFieldsOf(
        rules,
        config,
        data.map(({ json }) => json),
      );
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
 * What the keys of these records are made of: the fields of `KEY_FIELDS_*`, if a record has them;
 * else the first of the candidates that fits, of which nothing is to be hidden. Undefined where there
 * is no record to tell by.
 *
 * @throws CellarstreamError `KEY_FIELDS` when nothing fits, with the names of the fields seen.
 */
export function keyFieldsOf(
  rules: ResourceRules,
  { keyFields, pii }: Pick<Config, 'keyFields' | 'pii'>,
  data: readonly JsonValue[],
): readonly string[] | undefined {
  const { resource, keyCandidates } = rules;
  const set = keyFields[resource];
  const records = data.filter(isJsonObject);
  const setting = keyFieldsSetting(resource);
  if (data.length > 0 && records.length === 0 && !certain(rules)) {
    throw new CellarstreamError('KEY_FIELDS', `the first page of ${resource} has no objects on it`);
  }
  if (set) {
    if (records.length === 0) return undefined;
    // A record that lacks them goes to dead letters, but one that has them there must be.
    const keyOf = keyOfFields(set);
    if (records.some((record) => keyOf(record) !== undefined)) return set;
    const message = `${setting} is ${set.join()}, which no record of the first page has`;
    throw noKey(message, fieldNames(records));
  }
  const known = certain(rules);
  if (known) return known;
  const hidden = hiddenNames(pii, resource);
  const isFree = (fields: readonly string[]) => !fields.some((field) => hidden.has(field));
  const choice = chooseKeyFields(data, keyCandidates.filter(isFree));
  if (!choice) return undefined;
  if (choice.fields) return choice.fields;
  const tried = keyCandidates.map((fields) => fields.join('+')).join(', ');
  const advice = `set ${setting} to the field, or the fields with commas between, that tell its records apart`;
  const notFree = keyCandidates.flat().filter((field) => hidden.has(field));
  const but = notFree.length > 0 ? ` (the PII_ settings hide ${notFree.join(', ')})` : '';
  throw noKey(`none of ${tried} is the key of ${resource}${but}: ${advice}`, choice.seen);
}

/** A key that the API's description tells. */
function certain({ keyCandidates }: ResourceRules): readonly string[] | undefined {
  return keyCandidates.length === 1 ? keyCandidates[0] : undefined;
}

function noKey(message: string, seen: readonly string[]): CellarstreamError {
  const names = seen.slice(0, 50).join(', ') + (seen.length > 50 ? ', ...' : '');
  return new CellarstreamError('KEY_FIELDS', `${message}; fields seen: ${names}`);
}

import type { PiiConfig } from '../config/config.ts';
import type { Resource } from '../description/description.ts';
import { isJsonObject } from '../schemas/json/json.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import type { DecodedListOptions } from '../streams/decode/list-request.ts';
import { personalFields, HIDING_METHODS } from '../streams/records/personal-fields.ts';
import type { PersonalField, PersonalFields } from '../streams/records/personal-fields.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';

/**
 * Minimum number of records that are checked before a field that all of them lack is reported. If it is too small, rare fields are
 * reported. If it is too large, a typo is reported late.
 */
const RECORDS_TO_CHECK = 100;

/**
 * Returns the functions that hide a list's personal fields, as `PII_DROP`, `PII_MASK` and `PII_HMAC` state. Returns undefined if these
 * settings name no field of the list.
 */
export function personalFieldsOf(pii: PiiConfig, resource: Resource): PersonalFields | undefined {
  const fields = personalFieldList(pii, resource);
  if (fields.length === 0) return undefined;
  return personalFields(fields, pii.hmacKey && (() => pii.hmacKey!.reveal()));
}

/**
 * Returns the names of a record's top-level fields that are hidden or contain hidden fields. Such fields can't be part of the record's key.
 */
export function hiddenNames(pii: PiiConfig, resource: Resource): ReadonlySet<string> {
  return new Set(personalFieldList(pii, resource).map(({ path }) => path[0]!));
}

/**
 * Returns the fields of a list that the `PII_` settings name: each as a dotted path (`name`), and whether any record in `data` has it
 * (`isSeen`).
 */
export function namedFields(
  pii: PiiConfig,
  resource: Resource,
  data: readonly JsonValue[],
): { readonly name: string; readonly isSeen: boolean }[] {
  const records = data.filter(isJsonObject);
  return personalFieldList(pii, resource).map(({ path }) => {
    const { hide } = personalFields([{ path, method: 'drop' }]);
    return { name: path.join('.'), isSeen: records.some((record) => hide(record) !== record) };
  });
}

function personalFieldList(pii: PiiConfig, resource: Resource): PersonalField[] {
  return HIDING_METHODS.flatMap((method) =>
    pii[method]
      .filter((field) => field.resource === resource)
      .map(({ path }) => ({ path, method })),
  );
}

/**
 * Returns a function that inspects a list's responses, and reports configured fields that no record has: their names are probably
 * misspelled. These are fields of the `PII_` settings and volatile fields. The function reports once, after at least `RECORDS_TO_CHECK`
 * records or at the list's end.
 *
 * @param volatile JSON Pointers to volatile fields.
 * @param onUnmatchedField Called with the path of each such field within the record, such as `addresses.street`, or its JSON Pointer if it
 * is volatile.
 */
export function unmatchedFields(
  pii: PiiConfig,
  resource: Resource,
  volatile: readonly string[],
  onUnmatchedField: (field: string) => void,
): NonNullable<DecodedListOptions['inspect']> {
  const pointed = volatile.map((name) => ({ name, without: volatileFields([name]).without }));
  const fieldsIn = (data: readonly JsonValue[]) => [
    ...namedFields(pii, resource, data),
    ...pointed.map(({ name, without }) => ({
      name,
      isSeen: data.some((each) => without(each) !== each),
    })),
  ];
  const unseen = new Set(fieldsIn([]).map(({ name }) => name));
  let looked = 0;
  return (answer, query) => {
    if (unseen.size === 0) return;
    const { data, hasNext } = answer; // reading `data` creates the records of known runs
    if (data.length === 0) return;
    looked += data.length;
    for (const { name, isSeen } of fieldsIn(data.map(({ json }) => json))) {
      if (isSeen) unseen.delete(name);
    }
    const isWhole = query.from === undefined && query.key === undefined;
    if (looked < RECORDS_TO_CHECK && !(isWhole && !hasNext)) return;
    for (const name of unseen) onUnmatchedField(name);
    unseen.clear();
  };
}

import type { PiiConfig } from '../config/config.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { namedFields } from './personal-fields-of.ts';
import type { Resource } from '../description/description.ts';
import type { DecodedListOptions } from '../streams/decode/list-request.ts';
import { volatileFields } from '../streams/records/volatile-fields.ts';

export interface UnmatchedFieldsOptions {
  readonly pii: PiiConfig;
  /** JSON Pointers to volatile fields: a change of only these publishes no event. Default: none. */
  readonly volatile?: readonly string[];
  readonly resource: Resource;
  /**
   * Called once for each field that the settings name and that no record has. The argument is the field's path within the record, without
   * the name of the list, such as `addresses.street`, or the JSON Pointer of a volatile field.
   */
  readonly onUnmatchedField: (field: string) => void;
}

/**
 * Number of records that are checked before a field that all of them lack is reported. If it is too small, rare fields are reported. If it
 * is too large, a typo is reported late.
 */
const RECORDS_TO_CHECK = 100;

/**
 * Returns a function that inspects a list's responses before fields are hidden. It reports fields that the settings name and that none of
 * the first {@link RECORDS_TO_CHECK} records has; a shorter list is checked completely. Such a name is probably misspelled, and the setting
 * has no effect.
 */
export function unmatchedFields(
  options: UnmatchedFieldsOptions,
): NonNullable<DecodedListOptions['inspect']> {
  const { pii, volatile = [], resource, onUnmatchedField } = options;
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

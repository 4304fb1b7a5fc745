import type { PiiConfig } from '../config/config.ts';
import type { Resource } from '../description/description.ts';
import { isJsonObject } from '../schemas/json/json.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { personalFields, HIDING_METHODS } from '../streams/records/personal-fields.ts';
import type { PersonalField, PersonalFields } from '../streams/records/personal-fields.ts';

/**
 * Returns the personal fields of a list, which `PII_DROP`, `PII_MASK` and `PII_HMAC` hide. Returns undefined if these settings name no
 * field of the list.
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

import type { PiiConfig } from '../config/config.ts';
import type { Resource } from '../resources/resources.ts';
import { isJsonObject } from '../schemas/json/json.ts';
import type { JsonValue } from '../schemas/json/json.ts';
import { personalFields, WAYS } from '../streams/records/personal-fields.ts';
import type { PersonalField, PersonalFields } from '../streams/records/personal-fields.ts';

/** What `PII_DROP`, `PII_MASK` and `PII_HMAC` hide of a list; undefined when they name none of its fields. */
export function personalFieldsOf(pii: PiiConfig, resource: Resource): PersonalFields | undefined {
  const fields = fieldsOf(pii, resource);
  if (fields.length === 0) return undefined;
  return personalFields(fields, pii.hmacKey && (() => pii.hmacKey!.reveal()));
}

/** Names of a record's own fields of which something is hidden: no key can be made of them. */
export function hiddenNames(pii: PiiConfig, resource: Resource): ReadonlySet<string> {
  return new Set(fieldsOf(pii, resource).map(({ path }) => path[0]!));
}

/** What the settings name of a list, with dots, and whether any of these records has it. */
export function namedFields(
  pii: PiiConfig,
  resource: Resource,
  data: readonly JsonValue[],
): { readonly name: string; readonly isSeen: boolean }[] {
  const records = data.filter(isJsonObject);
  return fieldsOf(pii, resource).map(({ path }) => {
    const { hide } = personalFields([{ path, way: 'drop' }]);
    return { name: path.join('.'), isSeen: records.some((record) => hide(record) !== record) };
  });
}

function fieldsOf(pii: PiiConfig, resource: Resource): PersonalField[] {
  return WAYS.flatMap((way) =>
    pii[way].filter((field) => field.resource === resource).map(({ path }) => ({ path, way })),
  );
}

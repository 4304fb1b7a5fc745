import { listNamed } from '../description/description.ts';
import type { ApiDescription, ListDescription } from '../description/description.ts';
import { fieldType, withoutNull } from '../schemas/avro/avro-schema.ts';
import type { AvroType } from '../schemas/avro/avro-schema.ts';
import { pointerStep } from '../schemas/json/json.ts';
import type { Config } from './config.ts';
import { itemsOf } from './setting-parsers.ts';
import type { FieldPointer } from './setting-parsers.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { keyFieldsSetting, settingsFor } from './settings.ts';

const FIELD_SETTINGS = ['PII_DROP', 'PII_MASK', 'PII_HMAC', 'VOLATILE_FIELDS'] as const;

interface NamedField extends FieldPointer {
  readonly setting: (typeof FIELD_SETTINGS)[number];
  /** The field as written in `setting`: `items.email` in a `PII_` setting, `items:/email` in `VOLATILE_FIELDS`. */
  readonly item: string;
}

export function volatilePointers(
  { volatileFields }: Pick<Config, 'volatileFields'>,
  resource: string,
): readonly string[] {
  return volatileFields.filter((field) => field.resource === resource).map(pointerOf);
}

/** Formats a field as in `VOLATILE_FIELDS`, such as `items:/image_url`. */
export function volatileItem(field: FieldPointer): string {
  return `${field.resource}:${pointerOf(field)}`;
}

function pointerOf({ path }: FieldPointer): string {
  return path.map(pointerStep).join('');
}

/** Formats a field as in the `PII_` settings, such as `items.email`. */
export function piiItem({ resource, path }: FieldPointer): string {
  return [resource, ...path].join('.');
}

/**
 * Returns problems with the settings that name fields (`PII_DROP`, `PII_MASK`, `PII_HMAC`, `VOLATILE_FIELDS`): fields that the service
 * itself needs, fields in two `PII_` settings, and fields to be masked or hashed that are not text. Wrong syntax is not reported here.
 */
export function fieldProblems(texts: SettingTexts, description: ApiDescription): SettingProblem[] {
  const { schema } = settingsFor(description);
  const fields = FIELD_SETTINGS.flatMap((setting) => {
    const itemOf = setting === 'VOLATILE_FIELDS' ? volatileItem : piiItem;
    const named = schema.shape[setting].safeParse(texts[setting]).data ?? [];
    return named.map((field): NamedField => ({ ...field, setting, item: itemOf(field) }));
  });
  return fields.flatMap((field, index) => {
    const { setting, item } = field;
    const list = listNamed(description, field.resource);
    const advice =
      setting === 'VOLATILE_FIELDS'
        ? neededAdvice(field, list, texts, "its changes can't be ignored")
        : (duplicateAdvice(field, fields.slice(0, index)) ??
          neededAdvice(field, list, texts, "it can't be hidden") ??
          noTextAdvice(field, list));
    return advice === undefined ? [] : [{ name: setting, advice: `names ${item}${advice}` }];
  });
}

function duplicateAdvice(field: NamedField, earlier: readonly NamedField[]): string | undefined {
  const other = earlier.find(
    ({ setting, resource, path }) =>
      setting !== field.setting && resource === field.resource && isWithin(field.path, path),
  );
  if (!other) return undefined;
  const relation = field.path.length - other.path.length;
  const which =
    relation === 0 ? 'is also' : `${relation > 0 ? 'is part of' : 'contains'} ${other.item}`;
  return `, which ${which} in ${other.setting}: remove one of them`;
}

/**
 * Returns advice against naming a field in a setting if the service itself depends on the field, as on a key or a date; otherwise
 * undefined.
 *
 * @param but Consequence that the advice states, such as `it can't be hidden`.
 */
function neededAdvice(
  { resource, path }: FieldPointer,
  list: ListDescription,
  texts: SettingTexts,
  but: string,
): string | undefined {
  const keyFields = texts[keyFieldsSetting(resource)];
  if (keyFields !== undefined && itemsOf(keyFields).includes(path[0]!)) {
    return `: ${keyFieldsSetting(resource)} uses it as a key, so ${but}`;
  }
  const needed = neededPaths(list).find((each) => isWithin(each, path));
  if (!needed) return undefined;
  return needed.length > path.length
    ? `: the service depends on ${needed.join('.')} in it; name its other fields instead`
    : `: the service depends on it, so ${but}`;
}

function neededPaths({
  keyCandidates,
  created,
  updated,
  arrays,
  statuses,
}: ListDescription): readonly (readonly string[])[] {
  return [
    ...(keyCandidates.length === 1 ? keyCandidates[0]!.map((field) => [field]) : []),
    ...(created === undefined ? [] : [[created]]),
    ...updated.map((field) => [field]),
    ...Object.entries(arrays),
    ...(statuses?.subjects ?? []).flatMap(({ path, fields, time }) =>
      [...fields, ...(time === undefined ? [] : [[time]])].map((field) => [...path, ...field]),
    ),
  ];
}

/** Whether one path is a prefix of the other, or both are equal. */
function isWithin(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).join('\0') === other.slice(0, length).join('\0');
}

/** Returns advice if a field to be masked or hashed is not text in the schema: masks and HMACs are text. */
function noTextAdvice({ setting, path }: NamedField, list: ListDescription): string | undefined {
  const type = setting === 'PII_DROP' ? undefined : describedType(list, path);
  if (type === undefined || type === 'string') return undefined;
  return typeof type === 'object' && 'fields' in type
    ? ', which has fields of its own: name those that are text, or name it in PII_DROP'
    : ', which is not text in the schema: name it in PII_DROP';
}

/**
 * Returns the type of a field according to the list's documented schema; for an array, the type of its elements. Undefined if the list has
 * no documented schema, or the schema lacks the field.
 */
export function describedType(
  { types }: Pick<ListDescription, 'types'>,
  path: readonly string[],
): AvroType | undefined {
  let type: AvroType | undefined = types;
  for (const name of path) {
    const field = fieldType(type, name);
    type = field && valueType(field);
  }
  return type;
}

function valueType(type: AvroType): AvroType {
  const value = withoutNull(type);
  return typeof value === 'object' && 'items' in value ? valueType(value.items) : value;
}

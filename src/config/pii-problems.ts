import { describedType } from '../resources/described-type.ts';
import { isWithin, neededAdvice } from './needed-fields.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { SCHEMA } from './settings.ts';
import type { FieldPointer } from './settings.ts';

const SETTINGS = ['PII_DROP', 'PII_MASK', 'PII_HMAC'] as const;

/** A field with personal data, and the setting that names it. */
interface NamedField extends FieldPointer {
  readonly setting: (typeof SETTINGS)[number];
  /** The field's name as written in the setting. */
  readonly item: string;
}

/**
 * Returns problems with the settings that hide personal fields, beyond their syntax: a field named by two of them, a field that the service
 * depends on, or one that can't hold text instead of its value.
 */
export function piiProblems(texts: SettingTexts): SettingProblem[] {
  const all = SETTINGS.flatMap((setting): NamedField[] =>
    (SCHEMA.shape[setting].safeParse(texts[setting]).data ?? []).map((field) => ({
      ...field,
      setting,
      item: [field.resource, ...field.path].join('.'),
    })),
  );
  return all.flatMap((field, place) => {
    const advice =
      duplicateAdvice(field, all.slice(0, place)) ??
      neededAdvice(field, texts, "it can't be hidden") ??
      noTextAdvice(field);
    return advice === undefined ? [] : [{ name: field.setting, advice }];
  });
}

function duplicateAdvice(field: NamedField, earlier: readonly NamedField[]): string | undefined {
  const other = earlier.find(
    ({ setting, resource, path }) =>
      setting !== field.setting && resource === field.resource && isWithin(field.path, path),
  );
  if (!other) return undefined;
  if (other.path.length === field.path.length)
    return `names ${field.item}, as ${other.setting} does: a field is in one of them`;
  return `names ${field.item}, and ${other.setting} names ${other.item}: one is part of the other`;
}

/**
 * Returns advice if a field to be masked or hashed is not text in the schema; undefined otherwise. Masks and HMACs are text, so they can't
 * replace other types.
 */
function noTextAdvice({ setting, item, resource, path }: NamedField): string | undefined {
  const type = setting === 'PII_DROP' ? undefined : describedType(resource, path);
  if (type === undefined || type === 'string') return undefined;
  return typeof type === 'object' && 'fields' in type
    ? `names ${item}, which has fields of its own: name those that are texts, or name it in PII_DROP`
    : `names ${item}, which is no text in the schema: name it in PII_DROP`;
}

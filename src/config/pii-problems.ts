import { describedType } from '../resources/described-type.ts';
import { isWithin, neededAdvice } from './needed-fields.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { SCHEMA } from './settings.ts';
import type { FieldPointer } from './settings.ts';

const SETTINGS = ['PII_DROP', 'PII_MASK', 'PII_HMAC'] as const;

/** A personal field, and the setting that names it. */
interface Named extends FieldPointer {
  readonly setting: (typeof SETTINGS)[number];
  /** As it is in the setting. */
  readonly item: string;
}

/**
 * What is wrong with the settings that hide personal fields, each by itself well-formed: fields that two
 * of them name, that the service works by, or that can't hold a text in the place of what they hold.
 */
export function piiProblems(texts: SettingTexts): SettingProblem[] {
  const all = SETTINGS.flatMap((setting): Named[] =>
    (SCHEMA.shape[setting].safeParse(texts[setting]).data ?? []).map((field) => ({
      ...field,
      setting,
      item: [field.resource, ...field.path].join('.'),
    })),
  );
  return all.flatMap((field, place) => {
    const advice =
      twice(field, all.slice(0, place)) ??
      neededAdvice(field, texts, "it can't be hidden") ??
      noTextAdvice(field);
    return advice === undefined ? [] : [{ name: field.setting, advice }];
  });
}

function twice(field: Named, earlier: readonly Named[]): string | undefined {
  const other = earlier.find(
    ({ setting, resource, path }) =>
      setting !== field.setting && resource === field.resource && isWithin(field.path, path),
  );
  if (!other) return undefined;
  if (other.path.length === field.path.length)
    return `names ${field.item}, as ${other.setting} does: a field is in one of them`;
  return `names ${field.item}, and ${other.setting} names ${other.item}: one is part of the other`;
}

/** A mask or an HMAC is a text: where the schema has another type it would have no place of its own. */
function noTextAdvice({ setting, item, resource, path }: Named): string | undefined {
  const type = setting === 'PII_DROP' ? undefined : describedType(resource, path);
  if (type === undefined || type === 'string') return undefined;
  return typeof type === 'object' && 'fields' in type
    ? `names ${item}, which has fields of its own: name those that are texts, or name it in PII_DROP`
    : `names ${item}, which is no text in the schema: name it in PII_DROP`;
}

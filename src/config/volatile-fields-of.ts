import type { Config } from './config.ts';
import { neededAdvice } from './needed-fields.ts';
import type { Resource } from '../resources/resources.ts';
import { pointerStep } from '../schemas/json/json.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { SCHEMA } from './settings.ts';
import type { FieldPointer } from './settings.ts';

/** Returns the JSON Pointers of the fields of a list that `VOLATILE_FIELDS` names. */
export function volatilePointers(
  { volatileFields }: Pick<Config, 'volatileFields'>,
  resource: Resource,
): readonly string[] {
  return volatileFields.filter((field) => field.resource === resource).map(pointerOf);
}

/** Formats a field as in the setting, such as `products:/image_url`. */
export function volatileItem(field: FieldPointer): string {
  return `${field.resource}:${pointerOf(field)}`;
}

/**
 * Returns a problem for each field in `VOLATILE_FIELDS` that the service itself depends on, such as a key or a status: its changes can't be
 * ignored.
 */
export function volatileProblems(texts: SettingTexts): SettingProblem[] {
  const name = 'VOLATILE_FIELDS';
  const fields = SCHEMA.shape[name].safeParse(texts[name]).data ?? [];
  return fields.flatMap((field) => {
    const named = { ...field, item: volatileItem(field) };
    const advice = neededAdvice(named, texts, "its changes can't be ignored");
    return advice === undefined ? [] : [{ name, advice }];
  });
}

function pointerOf({ path }: FieldPointer): string {
  return path.map(pointerStep).join('');
}

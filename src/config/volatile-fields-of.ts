import type { Config } from './config.ts';
import { neededAdvice } from './needed-fields.ts';
import type { Resource } from '../resources/resources.ts';
import { pointerStep } from '../schemas/json/json.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { SCHEMA } from './settings.ts';
import type { FieldPointer } from './settings.ts';

/** The pointers that `VOLATILE_FIELDS` names of a list. */
export function volatilePointers(
  { volatileFields }: Pick<Config, 'volatileFields'>,
  resource: Resource,
): readonly string[] {
  return volatileFields.filter((field) => field.resource === resource).map(pointerOf);
}

/** A field as the setting names it: `products:/image_url`. */
export function volatileItem(field: FieldPointer): string {
  return `${field.resource}:${pointerOf(field)}`;
}

/** Fields of `VOLATILE_FIELDS` whose changes the service goes by: each is one that somebody waits for. */
export function volatileProblems(texts: SettingTexts): SettingProblem[] {
  const name = 'VOLATILE_FIELDS';
  const fields = SCHEMA.shape[name].safeParse(texts[name]).data ?? [];
  return fields.flatMap((field) => {
    const named = { ...field, item: volatileItem(field) };
    const advice = neededAdvice(named, texts, "its changes can't be passed over");
    return advice === undefined ? [] : [{ name, advice }];
  });
}

function pointerOf({ path }: FieldPointer): string {
  return path.map(pointerStep).join('');
}

import { RULES } from '../resources/resources.ts';
import type { Resource } from '../resources/resources.ts';
import type { StatusSubject } from '../schemas/events/own-records.ts';
import type { SettingTexts } from './setting-texts.ts';
import { itemsOf, keyFieldsSetting } from './settings.ts';
import type { FieldPointer } from './settings.ts';

/**
 * Why a setting can't name a field: what the service itself goes by, which is keys, times, what tells
 * elements apart, and statuses. Undefined for any other field.
 *
 * @param but What can't be, of a field that is needed as it is.
 */
export function neededAdvice(
  { item, resource, path }: FieldPointer & { readonly item: string },
  texts: SettingTexts,
  but: string,
): string | undefined {
  const keyFields = texts[keyFieldsSetting(resource)];
  if (keyFields !== undefined && itemsOf(keyFields).includes(path[0]!)) {
    return `names ${item}: ${keyFieldsSetting(resource)} makes keys of it`;
  }
  const needed = neededOf(resource).find((each) => isWithin(each, path));
  if (!needed) return undefined;
  return needed.length > path.length
    ? `names ${item}: the service works by ${needed.join('.')} in it; name the fields beside that one`
    : `names ${item}: the service works by it, ${but}`;
}

const SUBJECTS: Readonly<Record<StatusSubject, readonly string[]>> = {
  order: [],
  order_edit: ['order_edit'],
  fulfillment: ['fulfillment_info'],
  club_package: ['club_package_info'],
};

function neededOf(resource: Resource): readonly (readonly string[])[] {
  const { keyCandidates, identities = {}, statusFields } = RULES[resource];
  const statuses = Object.entries(statusFields ?? {}) as [StatusSubject, readonly string[]][];
  return [
    ...(keyCandidates.length === 1 ? keyCandidates[0]!.map((field) => [field]) : []),
    ['created_at'],
    ['updated_at'],
    ...Object.entries(identities),
    ...statuses.flatMap(([subject, fields]) =>
      fields.map((field) => [...SUBJECTS[subject], field]),
    ),
    ...(statusFields ? [[...SUBJECTS.fulfillment, 'updated_at']] : []), // when a status changed
  ];
}

/** Whether one path leads through the end of the other, or both are the same. */
export function isWithin(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).join('\0') === other.slice(0, length).join('\0');
}

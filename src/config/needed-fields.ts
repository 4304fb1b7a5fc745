import { RULES } from '../resources/resources.ts';
import type { Resource } from '../resources/resources.ts';
import type { StatusSubject } from '../schemas/events/own-records.ts';
import type { SettingTexts } from './setting-texts.ts';
import { itemsOf, keyFieldsSetting } from './settings.ts';
import type { FieldPointer } from './settings.ts';

/**
 * Returns advice if a setting names a field that the service itself depends on: a key, a date, a status, or a field that identifies
 * elements of an array. Undefined for all other fields.
 *
 * @param but What can't be done with such a field; ends the advice.
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
  const needed = neededPaths(resource).find((each) => isWithin(each, path));
  if (!needed) return undefined;
  return needed.length > path.length
    ? `names ${item}: the service depends on ${needed.join('.')} in it; name its other fields instead`
    : `names ${item}: the service depends on it, so ${but}`;
}

const SUBJECTS: Readonly<Record<StatusSubject, readonly string[]>> = {
  order: [],
  order_edit: ['order_edit'],
  fulfillment: ['fulfillment_info'],
  club_package: ['club_package_info'],
};

function neededPaths(resource: Resource): readonly (readonly string[])[] {
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
    ...(statusFields ? [[...SUBJECTS.fulfillment, 'updated_at']] : []), // dates the status change
  ];
}

/** Whether one path is a prefix of the other, or both are equal. */
export function isWithin(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).join('\0') === other.slice(0, length).join('\0');
}

import { describedType } from './described-type.ts';
import { RULES } from './resources.ts';
import type { Resource } from './resources.ts';
import type { StatusSubject } from './schemas/order-status-change.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { itemsOf, keyFieldsSetting, SCHEMA } from './settings.ts';
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
      neededAdvice(field, texts[keyFieldsSetting(field.resource)]) ??
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
  if (other.path.length === field.path.length) return `names ${field.item}, as ${other.setting} does: a field is in one of them`; // prettier-ignore
  return `names ${field.item}, and ${other.setting} names ${other.item}: one is part of the other`;
}

/** What the service itself goes by: keys, times, what tells elements apart, and statuses. */
function neededAdvice(
  { item, resource, path }: Named,
  keyFields: string | undefined,
): string | undefined {
  if (keyFields !== undefined && itemsOf(keyFields).includes(path[0]!)) {
    return `names ${item}: ${keyFieldsSetting(resource)} makes keys of it`;
  }
  const needed = neededOf(resource).find((each) => isWithin(each, path));
  if (!needed) return undefined;
  return needed.length > path.length
    ? `names ${item}: the service works by ${needed.join('.')} in it; name the fields beside that one`
    : `names ${item}: the service works by it, it can't be hidden`;
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

/** A mask or an HMAC is a text: where the schema has another type it would have no place of its own. */
function noTextAdvice({ setting, item, resource, path }: Named): string | undefined {
  const type = setting === 'PII_DROP' ? undefined : describedType(resource, path);
  if (type === undefined || type === 'string') return undefined;
  return typeof type === 'object' && 'fields' in type
    ? `names ${item}, which has fields of its own: name those that are texts, or name it in PII_DROP`
    : `names ${item}, which is no text in the schema: name it in PII_DROP`;
}

/** Whether one path leads through the end of the other, or both are the same. */
function isWithin(one: readonly string[], other: readonly string[]): boolean {
  const length = Math.min(one.length, other.length);
  return one.slice(0, length).join('\0') === other.slice(0, length).join('\0');
}

// Properties of the API's six lists: path, date parameters, keys, status fields.

import { fileURLToPath } from 'node:url';
import type { ApiDescription } from '../description/description.ts';
import { readDescription } from '../description/read-description.ts';
import type { RecordSchema } from '../schemas/avro/avro-schema.ts';
import type { Identities } from '../streams/diff/changed-paths.ts';
import { STATUS_FIELDS } from './orders/order-status.ts';
import type { Resource } from './resources.ts';

/** Properties of a list of the API that are known before the list is read. */
export interface ResourceRules {
  readonly resource: Resource;
  /** Path of the list after the base URL, including the version. */
  readonly path: string;
  /**
   * Whether the list accepts `modifiedFromDate` and `modifiedToDate`, so that it can be polled in windows. Lists without these parameters
   * are read by full scans alone.
   */
  readonly windowed: boolean;
  /**
   * Candidates for the key, each of one or several fields. The first candidate that every record of the first page has, with distinct
   * values, becomes the key. A sole candidate is used without this check.
   */
  readonly keyCandidates: readonly (readonly string[])[];
  /** Query parameter that requests a single record by its key, an integer; undefined if the list has no such parameter. */
  readonly byKey?: 'orderNumber';
  /** Status fields whose changes are published as separate events, by the kind of object that they belong to. */
  readonly statusFields?: typeof STATUS_FIELDS;
  /** Names of the fields that identify the elements of arrays in the list's records, by name of the array. */
  readonly identities?: Identities;
  /** Avro schema of the list's records, if the API documents their fields; otherwise the schema is inferred from the records. */
  readonly described?: RecordSchema;
}

/**
 * Properties of all lists, from the API's description. Properties that the description leaves open are determined from the API's responses.
 */
export const RULES: Readonly<Record<Resource, ResourceRules>> = rulesOf(
  readDescription(fileURLToPath(new URL('../description/wine/wine.yaml', import.meta.url))),
);

function rulesOf({ lists }: ApiDescription): Record<Resource, ResourceRules> {
  const rules = lists.map((list): ResourceRules => ({
    resource: list.name as Resource,
    path: list.path,
    windowed: list.dates !== undefined,
    keyCandidates: list.keyCandidates,
    ...(list.one && { byKey: 'orderNumber' }),
    ...(list.statuses && { statusFields: STATUS_FIELDS }),
    ...(Object.keys(list.arrays).length > 0 && { identities: list.arrays }),
    ...(list.types && { described: list.types }),
  }));
  return Object.fromEntries(rules.map((rule) => [rule.resource, rule])) as Record<
    Resource,
    ResourceRules
  >;
}

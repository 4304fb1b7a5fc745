// Features of the description format that the running service does not support yet.

import { isPagedByOffset } from './description.ts';
import type { ApiDescription, ListDescription } from './description.ts';
import { variablesIn } from './template.ts';
import type { Json } from './template.ts';

/** Smallest page size that the service supports: pages overlap by up to 20 records. */
export const MIN_PAGE_SIZE = 21;

/** Returns the features of a description that the service does not support yet, such as `paging cursor of orders`. */
export function unsupportedFeatures({ lists }: ApiDescription): string[] {
  return lists.flatMap((list) => listFeatures(list).map((feature) => `${feature} of ${list.name}`));
}

function listFeatures(list: ListDescription): string[] {
  const { paging, limit, query, body, total } = list;
  const hasSize = variablesIn([query, body ?? null] as Json).includes('limit');
  return [
    ...(paging === 'offset' && !hasSize ? ['paging offset without {limit}'] : []),
    ...(isPagedByOffset(list) && limit !== undefined && limit < MIN_PAGE_SIZE
      ? [`limit ${limit} (less than ${MIN_PAGE_SIZE})`]
      : []),
    ...(typeof total === 'object' && 'path' in total ? ['total by a request of its own'] : []),
    ...(list.deleted ? ['deleted'] : []),
    ...(list.agreed ? ['agreed'] : []),
  ];
}

/**
 * Reads and validates descriptions of APIs: files that tell the service how to log in to an API, how to request its lists and what its
 * responses contain.
 *
 * @module cellarstream/describe
 */

// Start here
export { readDescription } from '../description/read-description.ts';

// Lists
export { listNamed } from '../description/description.ts';

// The built-in description
export { WINE as wine } from '../description/wine/wine.ts';

// Types
export type {
  ApiDescription,
  ListDescription,
  SingleRead,
  StatusTableSubject,
  StatusTable,
} from '../description/description.ts';
export type { DescriptionFile, ListFile } from '../description/format.ts';
export type { Json, Parameters } from '../description/template.ts';

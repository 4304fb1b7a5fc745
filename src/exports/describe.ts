/**
 * Descriptions of APIs: reading and validating a description file, and its content in words. The service reads the file that the setting
 * `API_DESCRIPTION` names in the same way.
 *
 * @module cellarstream/describe
 */

export { parseDescription, readDescription } from '../description/read-description.ts';
export { descriptionInWords } from '../description/in-words.ts';
export { possibleLevels } from '../description/levels.ts';
export type { ReadingLevel } from '../description/levels.ts';
export type {
  ApiDescription,
  ListDescription,
  SingleRead,
  StatusSubject,
  StatusTable,
} from '../description/description.ts';

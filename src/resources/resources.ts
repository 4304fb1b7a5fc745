import { WINE } from '../description/wine/wine.ts';

/** Names of the lists of the built-in API. */
export const RESOURCES: readonly string[] = WINE.lists.map(({ name }) => name);
/** Name of a list. */
export type Resource = string;

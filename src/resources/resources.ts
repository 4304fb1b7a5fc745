// The names of the API's six lists. Their properties are in `rules.ts`, whose import reads the description of the API.

/** Names of the API's six lists, as in their URLs. */
export const RESOURCES = [
  'orders',
  'customers',
  'inventory',
  'wine-clubs',
  'wine-club-members',
  'products',
] as const;
/** Name of a list. */
export type Resource = (typeof RESOURCES)[number];

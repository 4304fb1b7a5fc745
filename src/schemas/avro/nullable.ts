/** Branches 0 and 1 of `["null", T]`, as Avro writes their index. */
export const [NULL_BRANCH, VALUE_BRANCH] = [0, 2] as const;

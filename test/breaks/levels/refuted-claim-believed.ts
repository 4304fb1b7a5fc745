import type * as real from '../../../src/description/measured.ts';

export * from '../../../src/description/measured.ts';

/**
 * The service starts on claims that `check --measure` refuted.
 *
 * Noticed by test/commands/refuted.test.ts.
 */
export const refutations: typeof real.refutations = () => [];

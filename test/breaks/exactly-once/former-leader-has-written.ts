import * as real from '../../../src/sinks/client/protocol-errors.ts';

export * from '../../../src/sinks/client/protocol-errors.ts';

/** A broker that says it leads a partition no more is taken to have written the batch. */
export const meaningOf: typeof real.meaningOf = (code) => {
  const meaning = real.meaningOf(code);
  return meaning === 'leader' ? 'done' : meaning;
};

import * as real from '../../../src/kafka/client/protocol-errors.ts';

export * from '../../../src/kafka/client/protocol-errors.ts';

/** A broker that says it leads a partition no more is taken to have written the batch. */
export const errorAction: typeof real.errorAction = (code) => {
  const meaning = real.errorAction(code);
  return meaning === 'leader' ? 'done' : meaning;
};

import * as real from '../../../src/pipeline/checkpoint/checkpoint.ts';
import { apart, withCommit } from '../with-commit.ts';

export * from '../../../src/pipeline/checkpoint/checkpoint.ts';

/** The cursor is committed in a transaction of its own, before the events. */
export const openCheckpoint: typeof real.openCheckpoint = (options) => {
  const { log, names } = options;
  return real.openCheckpoint({
    ...options,
    log: withCommit(log, apart(names.cursorTopic, 'before')),
  });
};

import * as real from '../../../src/pipeline/checkpoint/restore.ts';

export * from '../../../src/pipeline/checkpoint/restore.ts';

/** The store is believed about the cursor, and Kafka is asked only where the store knows of none. */
export const restore: typeof real.restore = (options, seen) => {
  const memory = options.store.memory();
  return real.restore(options, seen ?? (memory?.cursor ? memory : undefined));
};

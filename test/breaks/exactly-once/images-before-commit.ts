import * as real from '../../../src/pipeline/checkpoint/checkpoint.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/pipeline/checkpoint/checkpoint.ts';

/** Images are stored before the events that they are of are committed. */
export const openCheckpoint: typeof real.openCheckpoint = async (options) => {
  const { store } = options;
  const checkpoint = await real.openCheckpoint(options);
  return withOthers(checkpoint, {
    commit: async (batch) => {
      const memory = store.memory();
      if (memory) await store.put(batch.images, memory);
      await checkpoint.commit(batch);
    },
  });
};

import type { TaskMemory } from '../../src/state/store.ts';

/** What a task may know of Kafka: all that a store has to give back as it was. */
export const memory: TaskMemory = {
  home: 'h',
  ends: { 0: '7' },
  cursorEnd: '9',
  cursor: '{}',
  schemaIds: [1],
  sweep: null,
};

export const image = (text: string) => ({ schemaId: 3, bytes: Buffer.from(text) });

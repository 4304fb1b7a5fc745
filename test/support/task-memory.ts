import type { StoredPayloadDigest, TaskMemory } from '../../src/state/store.ts';

/** What a task may know of Kafka: all that a store has to give back as it was. */
export const memory: TaskMemory = {
  home: 'h',
  ends: { 0: '7' },
  cursorEnd: '9',
  cursor: '{}',
  schemaIds: [1],
  whole: 3,
  found: 1,
  sweep: null,
};

export const image = (text: string) => ({ schemaId: 3, bytes: Buffer.from(text) });

/** What a record may have been sent as: for one letter always the same. */
export const textOf = (letter: string, updatedAt: number | null = null): StoredPayloadDigest => ({
  digest: letter.repeat(16),
  length: 1_000 + letter.charCodeAt(0),
  updatedAt,
});

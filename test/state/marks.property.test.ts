import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SimFolder, storeOf } from '../sim/sim-store.ts';
import { KEYS, length, marksProperty, place, runOf } from '../support/marks-property.ts';
import { scaled } from '../support/scale.ts';
import { image, memory, textOf } from '../support/task-memory.ts';

describe('marks and runs', () => {
  const folder = new SimFolder();
  const store = storeOf(folder, () => Promise.resolve()).task('a');
  marksProperty('in memory', () => store, scaled(100, 20_000));

  it('leave nothing behind of runs that nobody looks at', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(place, length), { maxLength: 20 }), async (all) => {
        await store.clear();
        const images = KEYS.map((key) => ({ key, sequence: 1, image: image(key) }));
        const texts = new Map(KEYS.map((key) => [key, textOf(key)]));
        await store.put(images, memory, {
          seen: { keys: KEYS, sweep: 1, bySweep: true },
          payloadDigests: texts,
        });
        for (const [nth, [from, size]] of all.entries()) {
          const run = runOf(from, size, nth % 2 ? 'x' : 'y');
          const keys = run.members.map(({ key }) => key);
          const seen = { keys, sweep: 2 + nth, bySweep: true };
          await store.put([], memory, { seen, newRuns: [run] });
        }
        const kept = folder.tasks.get('a')!;
        const looking = [...kept.marks.values()].flatMap(({ run }) => (run ? [run.id] : []));
        expect(new Set(kept.heads.keys())).toEqual(new Set(looking));
        for (const [id, { refCount }] of kept.heads) {
          expect(refCount).toBe(looking.filter((each) => each === id).length);
        }
        expect([...kept.runs.keys()].filter((id) => !kept.heads.get(id)?.isLive)).toEqual([]);
      }),
    );
  });
});

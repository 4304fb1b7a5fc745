import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Run, SeenKeys, TaskStore } from '../../src/state/store.ts';
import { image, memory, textOf } from './task-memory.ts';

/** Keys as a list may have them, side by side. */
export const KEYS = 'abcdefghijkl'.split('');

/** A run of some keys that stand side by side; another time the same keys may be in other bytes. */
export function runOf(from: number, length: number, digest: string): Run {
  const keys = KEYS.slice(from, from + length);
  const id = `${digest}${keys.join('')}`.padEnd(8, '.').slice(0, 8);
  const members = keys.map((key, nth) => ({
    ...{ key, updatedAt: nth % 2 ? nth : null },
    ...{ at: nth * 10, end: nth * 10 + 9 },
  }));
  return { id, digest: id.padEnd(16, '-'), length: keys.length * 10, members };
}

/** What may happen to a list. */
type Step =
  | { readonly kind: 'sweep' }
  | { readonly kind: 'read'; readonly from: number; readonly length: number; readonly by: boolean }
  | { readonly kind: 'form'; readonly from: number; readonly length: number; readonly as: string }
  | { readonly kind: 'run'; readonly nth: number; readonly by: boolean; readonly writes: boolean }
  | { readonly kind: 'change'; readonly at: number; readonly isGone: boolean };

export const place = fc.nat(KEYS.length - 1);
export const length = fc.integer({ min: 1, max: 6 });
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('sweep' as const) }),
    fc.record({ kind: fc.constant('read' as const), from: place, length, by: fc.boolean() }),
    fc.record({
      kind: fc.constant('form' as const),
      ...{ from: place, length, as: fc.constantFrom('x', 'y') },
    }),
    fc.record({
      kind: fc.constant('run' as const),
      ...{ nth: fc.nat(5), by: fc.boolean(), writes: fc.boolean() },
    }),
    fc.record({ kind: fc.constant('change' as const), at: place, isGone: fc.boolean() }),
  ),
  { maxLength: 60 },
);

/** When each key was seen, each by itself: what runs must come to. */
class Model {
  readonly keys = new Map<string, { seen: number; read: number }>();

  see(keys: readonly string[], sweep: number, bySweep: boolean): void {
    for (const key of keys) {
      const old = this.keys.get(key) ?? { seen: 0, read: 0 };
      this.keys.set(key, {
        seen: Math.max(old.seen, sweep),
        read: bySweep ? sweep : old.read,
      });
    }
  }
}

/** The store and the model say the same of all keys. */
function agree(store: TaskStore, model: Model, sweep: number): void {
  for (const key of KEYS) {
    const { seen, read } = model.keys.get(key) ?? { seen: 0, read: 0 };
    for (const since of [sweep - 1, sweep]) {
      expect([key, since, store.isUnseen(key, since)]).toEqual([key, since, seen < since]);
      expect([key, since, store.countUnread([key], since)]).toEqual([
        key,
        since,
        read < since ? 1 : 0,
      ]);
    }
  }
}

/** Whatever happens to a list, in runs or not: the store knows of each key when it was seen. */
export function marksProperty(name: string, open: () => TaskStore, runs: number): void {
  it(`${name}: a key was seen when it was seen, by itself or in whatever run`, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (all) => {
        const store = open();
        await store.clear();
        const model = new Model();
        let sweep = 1;
        let sequence = 0;
        /** What the images of keys were last changed by: a run that was formed before is of other bytes. */
        const changedAt = new Map<string, number>();
        const formed: { readonly run: Run; readonly at: number }[] = [];
        const put = (
          seen: Omit<SeenKeys, 'sweep'>,
          more: Partial<Parameters<TaskStore['put']>[2]> = {},
        ) => store.put([], memory, { seen: { ...seen, sweep }, ...more });
        const change = async (keys: readonly string[], isGone: boolean) => {
          sequence += 1;
          for (const key of keys) changedAt.set(key, sequence);
          const images = keys.map((key) => ({ key, sequence, image: isGone ? null : image(key) }));
          const texts = new Map(keys.map((key) => [key, textOf(key)]));
          const seen = { keys: isGone ? [] : keys, sweep, bySweep: false };
          await store.put(images, memory, { seen, payloadDigests: texts });
          if (!isGone) model.see(keys, sweep, false);
          else for (const key of keys) model.keys.delete(key);
        };
        const isAlive = (key: string) => store.get(key) !== undefined;
        await change(KEYS, false);

        for (const step of all) {
          if (step.kind === 'sweep') sweep += 1;
          if (step.kind === 'change') await change([KEYS[step.at]!], step.isGone);
          if (step.kind === 'read') {
            const keys = KEYS.slice(step.from, step.from + step.length).filter(isAlive);
            await put({ keys, bySweep: step.by });
            model.see(keys, sweep, step.by);
          }
          if (step.kind === 'form') {
            const run = runOf(step.from, step.length, step.as);
            const keys = run.members.map(({ key }) => key).filter(isAlive);
            await put({ keys, bySweep: true }, { newRuns: [run] });
            model.see(keys, sweep, true);
            sequence += 1;
            formed.push({ run, at: sequence });
          }
          if (step.kind === 'run' && formed.length > 0) {
            const { run, at } = formed[step.nth % formed.length]!;
            const keys = run.members.map(({ key }) => key);
            const isLive = store.run(run.id) !== undefined;
            // Nothing is known again by what it was before it changed.
            if (isLive && formed.findLast((each) => each.run.id === run.id)!.at === at) {
              expect(keys.filter((key) => (changedAt.get(key) ?? 0) > at)).toEqual([]);
            }
            // Its members count as read for the first time, all of them.
            if (store.run(run.id)?.lastReadSweep !== sweep && isLive) {
              expect(keys.filter((key) => model.keys.get(key)!.read === sweep)).toEqual([]);
            }
            if (isLive) {
              // An image may be written beside the run that it is in: it is published again.
              const written = step.writes ? keys.slice(0, 1) : [];
              sequence += written.length;
              for (const key of written) changedAt.set(key, sequence);
              const seen = { keys: written, runs: [run.id], sweep, bySweep: step.by };
              const images = written.map((key) => ({ key, sequence, image: image(key) }));
              const texts = new Map(written.map((key) => [key, textOf(key)]));
              await store.put(images, memory, { seen, payloadDigests: texts });
              model.see(keys, sweep, step.by);
            }
          }
          agree(store, model, sweep);
        }
        const gone = KEYS.filter((key) => isAlive(key) && model.keys.get(key)!.seen < sweep);
        const unseen: string[] = [];
        for (let after: string | undefined, first = true; first || after !== undefined;) {
          const stretch = store.unseen(sweep, after);
          unseen.push(...stretch.keys);
          first = false;
          after = stretch.next;
        }
        expect(unseen).toEqual(gone);
      }),
      { numRuns: runs },
    );
  });
}

import type { Bounds, Offsets } from '../../kafka/log.ts';
import type { ImageUpdate, TaskMemory, TaskStore } from '../../state/store.ts';
import { NO_SWEEP } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { keyText } from '../../schemas/events/record-key.ts';
import type { TaskLog } from './task-claim.ts';
import type { ListHooks } from '../../observe/list-hooks.ts';

export interface RestoreOptions extends TaskLog {
  readonly store: TaskStore;
  readonly instance: string;
  /** Decodes an event of the topic; not called for tombstones. */
  readonly readImage: (value: Buffer) => Promise<PublishedImage>;
  readonly hooks?: Pick<ListHooks, 'onRestored'>;
}

/** Parts of an event in the resource's topic that the image store needs. */
export interface PublishedImage {
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

export interface RestoredImages {
  readonly memory: TaskMemory;
  /** Highest sequence number of the events that were read; 0 if none were. */
  readonly sequence: number;
  /** Number of messages that were read from the topic. */
  readonly restored: number;
}

/**
 * Image of a key whose newest message is a tombstone. The `d` event before the tombstone may be compacted away, so its sequence is unknown.
 * With the highest possible sequence, the tombstone replaces any stored image.
 */
const TOMBSTONE: PublishedImage = { sequence: Number.MAX_VALUE, image: null };

/** Reads the events' topic to its end, beginning at the offsets that the store has reached, and stores the images. */
export async function restoreImages(
  { log, names: { topic }, store, readImage }: RestoreOptions,
  initialMemory: TaskMemory,
  bounds: ReadonlyMap<number, Bounds>,
): Promise<RestoredImages> {
  let known = initialMemory;
  // These records existed when they were published, so they count as seen although no sweep of this store has read them.
  const { number: sweep } = storedSweep(known);
  let restored = 0;
  let sequence = 0;
  const ends = new Map([...bounds].map(([at, { high }]) => [at, high]));
  const from = new Map(
    [...bounds].map(([at, { low }]) => {
      const next = BigInt(known.ends[at] ?? 0);
      return [at, next > low ? next : low];
    }),
  );
  await log.readTail({
    topic,
    from,
    to: ends,
    onMessages: async (messages) => {
      const last = messages.at(-1);
      if (!last) return;
      const images: ImageUpdate[] = [];
      let { found } = known;
      for (const { key, value } of messages) {
        if (key === null) continue;
        const image = value ? await readImage(value) : TOMBSTONE;
        if (image !== TOMBSTONE) {
          sequence = Math.max(sequence, image.sequence);
          if (image.sequence > known.whole) found += 1;
        }
        images.push({ key: keyText(key), ...image });
      }
      restored += images.length;
      const end = String(BigInt(last.offset) + 1n);
      known = {
        ...known,
        ends: { ...known.ends, [last.partition]: end },
        schemaIds: withIds(known.schemaIds, images),
        found,
      };
      const keys = images.flatMap(({ key, image }) => (image ? [key] : []));
      await store.put(images, known, { seen: { keys, sweep, bySweep: false } });
    },
  });
  return {
    memory: { ...known, ends: { ...known.ends, ...offsetTexts(ends) } },
    sequence,
    restored,
  };
}

export function storedSweep({ sweep }: TaskMemory): SweepProgress {
  // Fields that the stored progress lacks get the values of a sweep that has not begun.
  return sweep === null
    ? NO_SWEEP
    : { ...NO_SWEEP, ...(JSON.parse(sweep) as Partial<SweepProgress>) };
}

export function offsetTexts(offsets: Offsets): Record<string, string> {
  return Object.fromEntries([...offsets].map(([partition, end]) => [partition, String(end)]));
}

/** Returns `ids` extended by the schema ids of `images`. Returns the array `ids` itself if there is no new id. */
export function withIds(ids: readonly number[], images: readonly ImageUpdate[]): readonly number[] {
  const all = new Set(ids);
  for (const { image } of images) if (image) all.add(image.schemaId);
  return all.size === ids.length ? ids : [...all];
}

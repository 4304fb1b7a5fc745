import type { Bounds, Offsets, TransactionalLog } from '../../sinks/sink.ts';
import type { ImageUpdate, TaskMemory, TaskStore } from '../../state/store.ts';
import { NO_SWEEP } from '../../streams/paging/sweep-progress.ts';
import type { SweepProgress } from '../../streams/paging/sweep-progress.ts';
import { keyText } from '../../schemas/events/record-key.ts';

/** An event as it is found in the resource's topic, as far as the image store needs it. */
export interface PublishedImage {
  readonly sequence: number;
  readonly image: { readonly schemaId: number; readonly bytes: Buffer } | null;
}

export interface ReadImagesOptions {
  readonly log: Pick<TransactionalLog, 'readTail'>;
  readonly topic: string;
  readonly store: TaskStore;
  /** Reads an event of the topic; only asked for messages that are not tombstones. */
  readonly readImage: (value: Buffer) => Promise<PublishedImage>;
}

/** What was read back from the topic. */
export interface ReadBack {
  readonly known: TaskMemory;
  /** The highest that was met. */
  readonly sequence: number;
  /** Number of messages. */
  readonly restored: number;
}

/** A deletion whose event was compacted away: only its tombstone is left, and it is the last word. */
const TOMBSTONE: PublishedImage = { sequence: Number.MAX_VALUE, image: null };

/** Stores the images that are in the topic from where the store has come to. */
export async function readImages(
  { log, topic, store, readImage }: ReadImagesOptions,
  begun: TaskMemory,
  bounds: ReadonlyMap<number, Bounds>,
): Promise<ReadBack> {
  let known = begun;
  // What was published while this store was away was there then: no sweep need have seen it.
  const { number: sweep } = notedSweep(known);
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
  return { known: { ...known, ends: { ...known.ends, ...offsetTexts(ends) } }, sequence, restored };
}

/** How far the sweeps have come. */
export function notedSweep({ sweep }: TaskMemory): SweepProgress {
  // An older version kept less of it.
  return sweep === null
    ? NO_SWEEP
    : { ...NO_SWEEP, ...(JSON.parse(sweep) as Partial<SweepProgress>) };
}

export function offsetTexts(offsets: Offsets): Record<string, string> {
  return Object.fromEntries([...offsets].map(([partition, end]) => [partition, String(end)]));
}

/** Ids of schemas, with those of more images. */
export function withIds(ids: readonly number[], images: readonly ImageUpdate[]): readonly number[] {
  const all = new Set(ids);
  for (const { image } of images) if (image) all.add(image.schemaId);
  return all.size === ids.length ? ids : [...all];
}

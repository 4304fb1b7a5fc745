import type { LedgerWriter } from '../../src/state/ledger-writer.ts';
import type { RecentStarts } from '../../src/state/recent-starts.ts';
import type {
  ImageUpdate,
  KeptText,
  Notes,
  StoredImage,
  Store,
  TaskMemory,
  TaskStore,
} from '../../src/state/store.ts';

/** The state folder of a process: images as the store keeps them, and its request times. */
export class SimFolder {
  readonly tasks = new Map<string, SimTask>();
  readonly starts = new Map<string, number[]>();
  /** Which process they are of. */
  writer: string | undefined;

  /** Whether a text is in one of the images. */
  holds(text: string): boolean {
    const images = [...this.tasks.values()].flatMap((task) => [...task.images.values()]);
    return images.some(({ bytes }) => bytes.includes(text));
  }

  /** How many records sweeps have brought here, and of how many the bytes were known. */
  swept(): { readonly records: number; readonly known: number } {
    const all = [...this.tasks.values()].map(({ swept }) => swept);
    const sum = (of: (each: SimTask['swept']) => number) =>
      all.reduce((n, each) => n + of(each), 0);
    return { records: sum(({ records }) => records), known: sum(({ known }) => known) };
  }

  /** The images as they are, for later. Its request times are not: whose would they be by then? */
  copy(): SimFolder {
    const copy = new SimFolder();
    for (const [name, task] of this.tasks) copy.tasks.set(name, task.copy());
    return copy;
  }
}

/** Whose request times are in a folder. */
export function writerIn(folder: Pick<SimFolder, 'writer'>): LedgerWriter {
  return { get: () => folder.writer, set: (writer) => (folder.writer = writer) };
}

/** Request times in a folder, as `recentStarts` keeps them in a file. */
export function startsIn({ starts }: Pick<SimFolder, 'starts'>) {
  return (name: string, capacity: number): RecentStarts => {
    const known = starts.get(name);
    const times = known ?? [];
    starts.set(name, times);
    return {
      times: [...times],
      known: known !== undefined,
      add: (at) => {
        times.push(at);
        if (times.length > capacity) times.shift();
        return (later) => {
          const place = times.lastIndexOf(at);
          if (place >= 0) times[place] = later;
        };
      },
      addAll: (more) => times.splice(0, Infinity, ...[...times, ...more].slice(-capacity)),
      close: () => undefined,
    };
  };
}

interface Mark {
  readonly seen: number;
  readonly read: number;
  readonly text?: KeptText | undefined;
}

const FOUND = 3; // small, so that what is gone takes several stretches
const AT_ONCE = 2; // small, so that a process may die with some images of a page written

class SimTask {
  images = new Map<string, StoredImage>();
  marks = new Map<string, Mark>();
  rejects = new Set<string>();
  memory: TaskMemory | undefined;
  readonly swept = { records: 0, known: 0 };

  copy(): SimTask {
    const copy = new SimTask();
    copy.images = new Map(this.images);
    copy.marks = new Map(this.marks);
    copy.rejects = new Set(this.rejects);
    copy.memory = this.memory;
    return copy;
  }

  put(updates: readonly ImageUpdate[], memory: TaskMemory, notes: Notes): void {
    if (notes.seen?.bySweep) this.#count(notes.seen.keys, updates, notes.texts);
    this.putImages(updates, notes.texts);
    const kept = new Map(notes.texts);
    for (const { key } of updates) kept.delete(key); // it came with its image
    for (const key of notes.seen?.keys ?? []) {
      const { sweep, bySweep } = notes.seen!;
      const old = this.mark(key);
      const read = bySweep ? sweep : old.read;
      this.marks.set(key, { ...old, seen: Math.max(old.seen, sweep), read });
    }
    for (const [key, text] of kept) this.marks.set(key, { ...this.mark(key), text });
    for (const digest of notes.rejects ?? []) this.rejects.add(digest);
    this.memory = memory;
  }

  putImages(updates: readonly ImageUpdate[], texts: Notes['texts']): void {
    for (const { key, sequence, image } of updates) {
      if ((this.images.get(key)?.sequence ?? -1) >= sequence) continue;
      if (image) {
        this.images.set(key, { sequence, ...image });
        this.marks.set(key, { ...this.mark(key), text: texts?.get(key) });
      } else {
        this.images.delete(key);
        this.marks.delete(key);
      }
    }
  }

  /** What was known before and brings neither an image nor its bytes has not been parsed. */
  #count(keys: readonly string[], updates: readonly ImageUpdate[], texts: Notes['texts']): void {
    const told = new Set([...updates.map(({ key }) => key), ...(texts?.keys() ?? [])]);
    this.swept.records += keys.length;
    this.swept.known += keys.filter((key) => this.mark(key).text && !told.has(key)).length;
  }

  mark(key: string): Mark {
    return this.marks.get(key) ?? { seen: 0, read: 0 };
  }
}

/** A folder as one process sees it: writing takes time, and a dead process writes no more. */
export function storeOf(folder: SimFolder, step: (what: string) => Promise<void>): Store {
  return {
    task: (name): TaskStore => {
      const task = folder.tasks.get(name) ?? new SimTask();
      folder.tasks.set(name, task);
      return {
        get: (key) => task.images.get(key),
        sequence: (key) => task.images.get(key)?.sequence,
        kept: (after) => {
          const keys = [...task.images]
            .map(([key, { sequence }]) => [key, sequence] as const)
            .filter(([key]) => after === undefined || key > after)
            .sort(([one], [other]) => (one < other ? -1 : 1));
          const found = keys.slice(0, FOUND);
          return { keys: found, next: keys.length > FOUND ? found.at(-1)![0] : undefined };
        },
        text: (key) => task.mark(key).text,
        memory: () => task.memory,
        put: async (images, memory, notes = {}) => {
          await step('put');
          const before = images.slice(0, -AT_ONCE);
          if (before.length > 0) {
            task.putImages(before, notes.texts);
            await step('put in part');
          }
          task.put(images, memory, notes);
          await step('stored');
        },
        count: () => task.images.size,
        unread: (keys, sweep) =>
          [...new Set(keys)].filter((key) => task.mark(key).read < sweep).length,
        isUnseen: (key, since) => task.mark(key).seen < since,
        unseen: (since, after) => {
          const keys = [...task.marks.keys()]
            .sort()
            .filter((key) => after === undefined || key > after)
            .filter((key) => task.mark(key).seen < since && task.images.has(key));
          const found = keys.slice(0, FOUND);
          return { keys: found, next: keys.length > FOUND ? found.at(-1) : undefined };
        },
        isRejected: (digest) => task.rejects.has(digest),
        clear: async () => {
          await step('clear');
          task.images.clear();
          task.marks.clear();
          task.rejects.clear();
          task.memory = undefined;
        },
      };
    },
    close: () => Promise.resolve(),
  };
}

import type { Mark } from '../../src/state/entries.ts';
import { Marks } from '../../src/state/marks.ts';
import { packRun, StoredRun } from '../../src/state/run-entries.ts';
import type { LedgerWriter, RecentStarts } from '../../src/state/recent-starts.ts';
import type {
  ImageUpdate,
  Notes,
  Run,
  RunHead,
  SeenKeys,
  StoredImage,
  Store,
  TaskMemory,
  TaskStore,
} from '../../src/state/store.ts';
import { payloadDigest } from '../../src/streams/records/page-record.ts';

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

  /** How many records sweeps have brought here; of how many the bytes were known, and of how many with their run. */
  swept(): { readonly records: number; readonly known: number; readonly inRuns: number } {
    const all = [...this.tasks.values()].map(({ swept }) => swept);
    const sum = (of: (each: SimTask['swept']) => number) =>
      all.reduce((n, each) => n + of(each), 0);
    return {
      records: sum(({ records }) => records),
      known: sum(({ known }) => known),
      inRuns: sum(({ inRuns }) => inRuns),
    };
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
      isReliable: known !== undefined,
      add: (at) => {
        times.push(at);
        if (times.length > capacity) times.splice(times.indexOf(Math.min(...times)), 1);
        return (later) => {
          const place = times.lastIndexOf(at);
          if (place >= 0) times[place] = later;
        };
      },
      addAll: (more) => {
        const newest = [...times, ...more].toSorted((a, b) => b - a);
        times.splice(0, Infinity, ...newest.slice(0, capacity));
      },
      close: () => undefined,
    };
  };
}

const FOUND = 3; // small, so that what is gone takes several stretches
const AT_ONCE = 2; // small, so that a process may die with some images of a page written

class SimTask {
  readonly images = new Map<string, StoredImage>();
  readonly marks = new Map<string, Mark>();
  readonly heads = new Map<string, RunHead>();
  readonly runs = new Map<string, Run>();
  rejects = new Set<string>();
  memory: TaskMemory | undefined;
  readonly swept = { records: 0, known: 0, inRuns: 0 };
  readonly marked = new Marks({
    marks: this.marks,
    heads: this.heads,
    runs: {
      get: (id) => new StoredRun(id, packRun(id, this.runs.get(id)!)),
      set: (id, run) => this.runs.set(id, run),
      delete: (id) => this.runs.delete(id),
    },
  });

  copy(): SimTask {
    const copy = new SimTask();
    for (const [key, image] of this.images) copy.images.set(key, image);
    for (const [key, mark] of this.marks) copy.marks.set(key, mark);
    for (const [id, head] of this.heads) copy.heads.set(id, head);
    for (const [id, run] of this.runs) copy.runs.set(id, run);
    copy.rejects = new Set(this.rejects);
    copy.memory = this.memory;
    return copy;
  }

  put(updates: readonly ImageUpdate[], memory: TaskMemory, notes: Notes): void {
    const { seen, payloadDigests, newRuns = [] } = notes;
    if (seen?.bySweep) this.#count(seen, updates, payloadDigests);
    this.putImages(updates, payloadDigests);
    if (seen) {
      const { keys, runs = [], sweep, bySweep } = seen;
      const sighting = { lastSeenSweep: sweep, lastReadSweep: bySweep ? sweep : 0 };
      const written = new Set(updates.map(({ key }) => key)); // its text came with its image
      for (const id of runs) this.marked.markRunSeen(id, sighting);
      for (const key of keys) {
        const text = written.has(key) ? undefined : payloadDigests?.get(key);
        this.marked.markSeen(key, sighting, text);
      }
      for (const run of newRuns) this.marked.addRun(run, sweep);
    }
    this.#settle();
    for (const digest of notes.rejects ?? []) this.rejects.add(digest);
    this.memory = memory;
  }

  putImages(updates: readonly ImageUpdate[], texts: Notes['payloadDigests']): void {
    for (const { key, sequence, image } of updates) {
      if ((this.images.get(key)?.sequence ?? -1) >= sequence) continue;
      if (image) {
        this.images.set(key, { sequence, ...image });
        this.marked.imageWritten(key, texts?.get(key));
      } else {
        this.images.delete(key);
        this.marked.imageRemoved(key);
      }
    }
    this.#settle();
  }

  /** What is kept is in the maps alone: others may have copies of them. */
  #settle(): void {
    this.marked.flush();
    this.marked.evict();
  }

  /** What was known before and brings neither an image nor its bytes has not been parsed. */
  #count(
    { keys, runs = [] }: SeenKeys,
    updates: readonly ImageUpdate[],
    texts: Notes['payloadDigests'],
  ): void {
    const told = new Set([...updates.map(({ key }) => key), ...(texts?.keys() ?? [])]);
    const inRuns = runs.reduce((sum, id) => sum + (this.runs.get(id)?.members.length ?? 0), 0);
    const known = keys.filter(
      (key) => this.marked.markOf(key).payloadDigest && !told.has(key),
    ).length;
    this.swept.records += keys.length + inRuns;
    this.swept.known += known + inRuns;
    this.swept.inRuns += inRuns;
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
        storedKeys: (after) => {
          const keys = [...task.images]
            .map(([key, { sequence }]) => [key, sequence] as const)
            .filter(([key]) => after === undefined || key > after)
            .sort(([one], [other]) => (one < other ? -1 : 1));
          const found = keys.slice(0, FOUND);
          return { keys: found, next: keys.length > FOUND ? found.at(-1)![0] : undefined };
        },
        payloadDigest: (key) => task.marked.markOf(key).payloadDigest,
        runFrom: (key) => task.marked.runFrom(key),
        digestOf: payloadDigest,
        run: (id) => {
          const head = task.marked.head(id);
          return head?.isLive ? head : undefined;
        },
        isReadWithRun: (key, sweep) => task.marked.isReadWithRun(key, sweep),
        memory: () => task.memory,
        put: async (images, memory, notes = {}) => {
          await step('put');
          const before = images.slice(0, -AT_ONCE);
          if (before.length > 0) {
            task.putImages(before, notes.payloadDigests);
            await step('put in part');
          }
          task.put(images, memory, notes);
          await step('stored');
        },
        count: () => task.images.size,
        countUnread: (keys, sweep) =>
          [...new Set(keys)].filter((key) => task.marked.sighting(key).lastReadSweep < sweep)
            .length,
        isUnseen: (key, since) => task.marked.sighting(key).lastSeenSweep < since,
        unseen: (since, after) => {
          const keys = [...task.marks.keys()]
            .sort()
            .filter((key) => after === undefined || key > after)
            .filter(
              (key) => task.marked.sighting(key).lastSeenSweep < since && task.images.has(key),
            );
          const found = keys.slice(0, FOUND);
          return { keys: found, next: keys.length > FOUND ? found.at(-1) : undefined };
        },
        isRejected: (digest) => task.rejects.has(digest),
        clear: async () => {
          await step('clear');
          task.images.clear();
          task.marks.clear();
          task.heads.clear();
          task.runs.clear();
          task.marked.evict();
          task.rejects.clear();
          task.memory = undefined;
        },
      };
    },
    close: () => Promise.resolve(),
  };
}

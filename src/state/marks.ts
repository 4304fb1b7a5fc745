import { damaged, UNMARKED } from './entries.ts';
import type { KeptText, Mark } from './entries.ts';
import type { Run, RunHead, StoredRun } from './run-entries.ts';

/** Where marks and runs are kept. What is put is read back at once. */
export interface MarkTables {
  mark(key: string): Mark | undefined;
  putMark(key: string, mark: Mark): void;
  removeMark(key: string): void;
  /** Of a run that some mark looks at. */
  head(id: string): RunHead | undefined;
  putHead(id: string, head: RunHead): void;
  /** Of a live run. */
  run(id: string): StoredRun;
  putRun(run: Run): void;
  /** Only its head is left. */
  removeRun(id: string): void;
  removeHead(id: string): void;
}

/** What is said of a key that was seen. */
export interface Seen {
  /** The newest sweep at that time. */
  readonly seen: number;
  /** The sweep that read it, where one did. */
  readonly read?: number;
  /** What its image is known to have been sent as. */
  readonly text?: KeptText;
}

/** Marks that are remembered: those of as many pages as are asked for at once. */
const MAX_RECENT = 10_000;

/**
 * When each key was seen: by its own mark, and by that of the run that it is in. The newer of the two counts.
 *
 * A run is seen whole, or never again: where an image of it changes, or a sweep reads a member that it has not read with
 * the run, the run is retired. Its head stays, with what was seen, until no mark looks there any more.
 *
 * Marks are looked at several times before they are written, and may change more than once: what has changed is written by
 * {@link flush}.
 */
export class Marks {
  readonly #tables: MarkTables;
  readonly #recent = new Map<string, Mark>();
  readonly #changed = new Set<string>();
  readonly #heads = new Map<string, RunHead>();
  readonly #changedHeads = new Set<string>();

  constructor(tables: MarkTables) {
    this.#tables = tables;
  }

  /** The mark of a key by itself. */
  of(key: string): Mark {
    const recent = this.#recent.get(key);
    if (recent) return recent;
    const mark = this.#tables.mark(key) ?? UNMARKED;
    this.#remember(key, mark);
    return mark;
  }

  /** When a key was seen, by itself or with its run. */
  sighting(key: string): Pick<Mark, 'seen' | 'read'> {
    return this.#sightingOf(this.of(key));
  }

  /** The run that begins with a key; undefined where none does. */
  runFrom(key: string): StoredRun | undefined {
    const { run } = this.of(key);
    if (!run?.isFirst || !this.headOf(run.id).isLive) return undefined;
    if (!this.#changed.has(key)) this.#recent.delete(key); // it is looked at no more, as long as the run is
    return this.#tables.run(run.id);
  }

  /** Whether a sweep has read a key as a member of its run. */
  isReadWithRun(key: string, sweep: number): boolean {
    const { run } = this.of(key);
    const head = run && this.head(run.id);
    return head !== undefined && head.isLive && head.read >= sweep;
  }

  /** The head that a mark looks at. @throws CellarstreamError `STATE_DAMAGED` when it is gone. */
  headOf(id: string): RunHead {
    const head = this.head(id);
    // Without it a key that was seen would count as gone.
    if (!head) throw damaged('a run is gone');
    return head;
  }

  head(id: string): RunHead | undefined {
    return this.#heads.get(id) ?? this.#tables.head(id);
  }

  /** A key was seen by itself. */
  see(key: string, { seen, read, text }: Seen): void {
    const old = this.of(key);
    const was = this.#sightingOf(old);
    if (old.run && read !== undefined && was.read < read) this.#retire(old.run.id);
    const next = {
      ...old,
      seen: Math.max(was.seen, seen),
      read: Math.max(was.read, read ?? 0),
      text: text ?? old.text,
    };
    const isSame = next.seen === was.seen && next.read === was.read && next.text === old.text;
    if (isSame && old !== UNMARKED) return;
    this.#change(key, old, next);
  }

  /** A run was seen: also one that has been retired since. */
  seeRun(id: string, { seen, read = 0 }: Pick<Seen, 'seen' | 'read'>): void {
    const head = this.head(id);
    if (!head || (head.seen >= seen && head.read >= read)) return;
    const newer = { seen: Math.max(head.seen, seen), read: Math.max(head.read, read) };
    this.#putHead(id, { ...head, ...newer });
  }

  /** Members of a run have been read one by one, by that sweep; one that is in a live run leaves things as they are. */
  form(run: Run, sweep: number): void {
    const isTaken = ({ key }: { readonly key: string }) => {
      const { hasImage, text, run: other } = this.of(key);
      return !hasImage || !text || (other && this.head(other.id)?.isLive);
    };
    if (this.head(run.id) || run.members.some(isTaken)) return;
    for (const [nth, { key }] of run.members.entries()) {
      const old = this.of(key);
      const place = { id: run.id, isFirst: nth === 0 };
      this.#change(key, old, { ...old, ...this.#sightingOf(old), run: place });
    }
    this.#tables.putRun(run);
    this.#putHead(run.id, { seen: sweep, read: sweep, left: run.members.length, isLive: true });
  }

  /** The image of a key was written. */
  written(key: string, text: KeptText | undefined): void {
    const old = this.of(key);
    if (old.run) this.#retire(old.run.id);
    this.#change(key, old, { ...old, ...this.#sightingOf(old), hasImage: true, text });
  }

  /** The image of a key was taken away, and its mark goes with it. */
  removed(key: string): void {
    const { run } = this.of(key);
    if (run) this.#retire(run.id);
    if (run) this.#leave(run.id);
    this.#recent.delete(key);
    this.#changed.delete(key);
    this.#tables.removeMark(key);
  }

  /** Writes what has changed. */
  flush(): void {
    for (const key of this.#changed) this.#tables.putMark(key, this.#recent.get(key)!);
    this.#changed.clear();
    for (const id of this.#changedHeads) this.#tables.putHead(id, this.#heads.get(id)!);
    this.#changedHeads.clear();
    this.#heads.clear();
  }

  /** What was written by others than this, or not at all. */
  forget(keys: Iterable<string> = [...this.#recent.keys()]): void {
    for (const key of keys) {
      this.#recent.delete(key);
      this.#changed.delete(key);
    }
    this.#heads.clear();
    this.#changedHeads.clear();
  }

  #sightingOf({ seen, read, run }: Mark): Pick<Mark, 'seen' | 'read'> {
    if (!run) return { seen, read };
    const head = this.headOf(run.id);
    return { seen: Math.max(seen, head.seen), read: Math.max(read, head.read) };
  }

  /** A mark that is written takes over what a retired run says, and looks there no more. */
  #change(key: string, old: Mark, next: Mark): void {
    const isRetired = next.run && next.run === old.run && !this.head(next.run.id)?.isLive;
    const run = isRetired ? undefined : next.run;
    if (old.run && old.run !== run) this.#leave(old.run.id);
    this.#remember(key, { ...next, run });
    this.#changed.add(key);
  }

  #retire(id: string): void {
    const head = this.head(id);
    if (!head?.isLive) return;
    this.#tables.removeRun(id);
    this.#putHead(id, { ...head, isLive: false });
  }

  #leave(id: string): void {
    const head = this.head(id);
    if (!head) return;
    if (head.left > 1) {
      this.#putHead(id, { ...head, left: head.left - 1 });
      return;
    }
    this.#heads.delete(id);
    this.#changedHeads.delete(id);
    this.#tables.removeHead(id);
  }

  #putHead(id: string, head: RunHead): void {
    this.#heads.set(id, head);
    this.#changedHeads.add(id);
  }

  #remember(key: string, mark: Mark): void {
    if (this.#recent.size >= MAX_RECENT && this.#changed.size === 0) this.#recent.clear();
    this.#recent.set(key, mark);
  }
}

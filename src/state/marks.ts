import {
  damagedError,
  UNMARKED,
  type Mark,
  type Sighting,
  type StoredPayloadDigest,
} from './entries.ts';
import type { Run, RunHead, StoredRun } from './run-entries.ts';

/** Table of the image store, used like a `Map`. Written values can be read back at once. */
export interface Table<Written, Stored = Written> {
  get(key: string): Stored | undefined;
  set(key: string, value: Written): unknown;
  delete(key: string): unknown;
}

/** Tables of the image store that say when keys, and runs (adjacent records recognized as a unit), were last seen. */
export interface MarkTables {
  /** Marks by key: when each key was last seen. */
  readonly marks: Table<Mark>;
  /**
   * Heads of runs by the run's id: when each run was last seen and last read, and whether it can still be recognized. Contains each run to
   * which any mark refers.
   */
  readonly heads: Table<RunHead>;
  /**
   * Digest and records of each run (adjacent records that are recognized as a unit), by the run's id. Contains no retired runs, which are
   * never recognized again.
   */
  readonly runs: Table<Run, StoredRun>;
}

/**
 * Maximum number of cached marks (entries that say when the API last showed a key). While changes wait to be written, more may be cached.
 * If it is too small, lmdb is read more often.
 */
const MAX_RECENT = 10_000;

/**
 * Stores when the API last showed each key. Each key has an entry in the image store, called its mark, with the number of the sweep in
 * which the key was last seen.
 *
 * - A key may belong to a run: adjacent records of a page that are recognized as a unit by their bytes. A run has one entry for all of its
 *   keys, called its head. When a read shows the run, only the head is updated. A key of a run was last seen in the sweep of its mark or
 *   in that of the head: the newer one counts.
 * - A run is retired, and never recognized again, when the image of one of its records changes or is deleted, or when a sweep reads one of
 *   its records without the others. The head remains until no mark refers to the run.
 * - Changes are collected in memory until {@link flush} writes them, because a mark may change several times until then.
 */
export class Marks {
  readonly #tables: MarkTables;
  readonly #recent = new Map<string, Mark>();
  readonly #changed = new Set<string>();
  /** Heads of runs that have changed since {@link flush} last wrote them. */
  readonly #changedHeads = new Map<string, RunHead>();

  constructor(tables: MarkTables) {
    this.#tables = tables;
  }

  /**
   * Returns the mark of a key: when the key was last seen, and data about its record. {@link UNMARKED} if none is stored. If the key is in
   * a run, the run may have been seen later: see {@link sighting}.
   */
  markOf(key: string): Mark {
    const recent = this.#recent.get(key);
    if (recent) return recent;
    const mark = this.#tables.marks.get(key) ?? UNMARKED;
    this.#remember(key, mark);
    return mark;
  }

  /**
   * Returns when a key was last shown, as two numbers of sweeps. `lastSeenSweep`: the newest sweep that had begun when any read, such as a
   * poll, showed the key. `lastReadSweep`: the newest sweep that read the key. Reads that showed the key's run as a unit count too.
   */
  sighting(key: string): Sighting {
    return this.#sightingOf(this.markOf(key));
  }

  /** Returns the run whose first key is `key`; undefined if there is none, or if that run is retired (never recognized again). */
  runFrom(key: string): StoredRun | undefined {
    const { run } = this.markOf(key);
    if (!run?.isFirst || !this.headOf(run.id).isLive) return undefined;
    if (!this.#changed.has(key)) this.#recent.delete(key); // not needed while the run is live
    const stored = this.#tables.runs.get(run.id);
    if (!stored) throw damagedError('a run is missing');
    return stored;
  }

  /**
   * Whether sweep number `sweep` or a later one has read the run of a key (adjacent records recognized as a unit). False if the key is in
   * no run, or if its run is retired (never recognized again).
   */
  isReadWithRun(key: string, sweep: number): boolean {
    const { run } = this.markOf(key);
    const head = run && this.head(run.id);
    return head !== undefined && head.isLive && head.lastReadSweep >= sweep;
  }

  /**
   * Returns the head of a run (adjacent records that are recognized as a unit): in which sweeps the run was last seen and last read. At
   * least one mark (entry of a key) must refer to the run.
   *
   * @throws CellarstreamError `STATE_DAMAGED` when the head is missing.
   */
  headOf(id: string): RunHead {
    const head = this.head(id);
    // Without the head a key that was seen would count as missing.
    if (!head) throw damagedError('a run is missing');
    return head;
  }

  head(id: string): RunHead | undefined {
    return this.#changedHeads.get(id) ?? this.#tables.heads.get(id);
  }

  /**
   * Stores that a read showed a key, and in which sweep. To be called for a record that was recognized alone, and not as a part of a run
   * (adjacent records that are recognized together). If this is a sweep's first read of the key, the key's run (if any) is retired: it is
   * never recognized again.
   *
   * @param sighting Numbers of sweeps. `lastReadSweep` is 0 if the read was no sweep but, for example, a poll.
   * @param payloadDigest Digest of the record's JSON bytes, if it was computed and their content equals that of the stored image.
   */
  markSeen(key: string, sighting: Sighting, payloadDigest: StoredPayloadDigest | undefined): void {
    const old = this.markOf(key);
    const was = this.#sightingOf(old);
    if (old.run && was.lastReadSweep < sighting.lastReadSweep) this.#retire(old.run.id);
    const next = {
      ...old,
      ...newest(was, sighting),
      payloadDigest: payloadDigest ?? old.payloadDigest,
    };
    const isSame =
      next.lastSeenSweep === was.lastSeenSweep &&
      next.lastReadSweep === was.lastReadSweep &&
      next.payloadDigest === old.payloadDigest;
    if (isSame && old !== UNMARKED) return;
    this.#change(key, old, next);
  }

  /**
   * Stores that a read showed all records of a run (adjacent records that are recognized together by their bytes), and in which sweep. Does
   * nothing if the store has no entry for the run.
   */
  markRunSeen(id: string, { lastSeenSweep, lastReadSweep }: Sighting): void {
    const head = this.head(id);
    if (!head || (head.lastSeenSweep >= lastSeenSweep && head.lastReadSweep >= lastReadSweep))
      return;
    // Also if the run is retired: this may have happened after the read.
    this.#changedHeads.set(id, { ...head, ...newest(head, { lastSeenSweep, lastReadSweep }) });
  }

  /**
   * Stores a new run (adjacent records of a page, which later reads recognize as a unit), whose records sweep number `sweep` has read one
   * by one. Does nothing in these cases:
   *
   * - the store already has an entry for the run;
   * - one of the records is in another run that can still be recognized;
   * - one of the records has no stored image or no payload digest.
   */
  addRun(run: Run, sweep: number): void {
    const isTaken = ({ key }: { readonly key: string }) => {
      const { hasImage, payloadDigest, run: other } = this.markOf(key);
      return !hasImage || !payloadDigest || (other && this.head(other.id)?.isLive);
    };
    if (this.head(run.id) || run.members.some(isTaken)) return;
    for (const [nth, { key }] of run.members.entries()) {
      const old = this.markOf(key);
      const place = { id: run.id, isFirst: nth === 0 };
      this.#change(key, old, { ...old, ...this.#sightingOf(old), run: place });
    }
    this.#tables.runs.set(run.id, run);
    const sighting = { lastSeenSweep: sweep, lastReadSweep: sweep };
    this.#changedHeads.set(run.id, { ...sighting, refCount: run.members.length, isLive: true });
  }

  /**
   * Updates a key after its image was written: stores the digest of the payload from which the image was made, or that there is none. The
   * key's run (adjacent records that are recognized as a unit), if any, is never recognized again.
   */
  imageWritten(key: string, payloadDigest: StoredPayloadDigest | undefined): void {
    const old = this.markOf(key);
    if (old.run) this.#retire(old.run.id);
    this.#change(key, old, { ...old, ...this.#sightingOf(old), hasImage: true, payloadDigest });
  }

  /**
   * Deletes the mark of a key, which says when the key was last seen, after its image was deleted. The key's run (adjacent records
   * recognized as a unit), if any, is never recognized again.
   */
  imageRemoved(key: string): void {
    const { run } = this.markOf(key);
    if (run) this.#retire(run.id);
    if (run) this.#leave(run.id);
    this.#recent.delete(key);
    this.#changed.delete(key);
    this.#tables.marks.delete(key);
  }

  /** Writes the changes of marks and run heads that were collected in memory to the tables of the image store. */
  flush(): void {
    for (const key of this.#changed) this.#tables.marks.set(key, this.#recent.get(key)!);
    this.#changed.clear();
    for (const [id, head] of this.#changedHeads) this.#tables.heads.set(id, head);
    this.#changedHeads.clear();
  }

  /**
   * Removes cached entries: the marks of `keys` (default: all marks), and the heads of all runs. Both say when the API last showed a key or
   * run. Changes that are not yet written are lost.
   */
  evict(keys: Iterable<string> = [...this.#recent.keys()]): void {
    for (const key of keys) {
      this.#recent.delete(key);
      this.#changed.delete(key);
    }
    this.#changedHeads.clear();
  }

  #sightingOf({ lastSeenSweep, lastReadSweep, run }: Mark): Sighting {
    if (!run) return { lastSeenSweep, lastReadSweep };
    return newest(this.headOf(run.id), { lastSeenSweep, lastReadSweep });
  }

  /**
   * Replaces the mark of a key (the sweeps in which the key was seen) by `next`. The sweep numbers in `next` must be at least those of the
   * key's run, if any. If that run is retired (never recognized again), the new mark does not refer to it.
   */
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
    this.#tables.runs.delete(id);
    this.#changedHeads.set(id, { ...head, isLive: false });
  }

  #leave(id: string): void {
    const head = this.head(id);
    if (!head) return;
    if (head.refCount > 1) {
      this.#changedHeads.set(id, { ...head, refCount: head.refCount - 1 });
      return;
    }
    this.#changedHeads.delete(id);
    this.#tables.heads.delete(id);
  }

  #remember(key: string, mark: Mark): void {
    if (this.#recent.size >= MAX_RECENT && this.#changed.size === 0) this.#recent.clear();
    this.#recent.set(key, mark);
  }
}

function newest(one: Sighting, other: Sighting): Sighting {
  return {
    lastSeenSweep: Math.max(one.lastSeenSweep, other.lastSeenSweep),
    lastReadSweep: Math.max(one.lastReadSweep, other.lastReadSweep),
  };
}

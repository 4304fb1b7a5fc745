import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { open } from 'lmdb';
import type { RootDatabase } from 'lmdb';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { damaged } from './entries.ts';
import { folderError } from './folder-error.ts';
import { damageIn, newestTransaction } from './lmdb-pages.ts';
import type { Looked } from './lmdb-pages.ts';
import { makeOwnerOnly, OWNER_ONLY } from './owner-only.ts';

/** Told when the images were thrown away, and why: they are read anew from Kafka. */
export type OnDiscarded = (reason: string) => void;

/** `images.mdb`, opened: every use of it goes through `use`. */
export interface ImageFile {
  /** Why it can't be relied on any more; it is to be opened anew. */
  readonly damage: () => CellarstreamError | undefined;
  /**
   * Does something with lmdb.
   *
   * @throws CellarstreamError `STATE_DAMAGED` once anything in the file was found to be wrong: all of
   * it counts as wrong from then on. `STATE_FOLDER` when it can't be written: what the transaction
   * would have stored is not stored, and the next may succeed.
   */
  readonly use: <T>(work: (root: RootDatabase) => T) => T;
  /** To be called after a write: this start was not stillborn. */
  readonly proven: () => void;
  readonly close: () => Promise<void>;
}

const MAX_DATABASES = 1_024;
/** Larger than lmdb makes it. */
const LOCK_BYTES = 16_384;
/** So many starts in a row that ended before they had stored anything: then the file is to blame. */
const MAX_STILLBORN = 2;

/**
 * Opens the images in a folder, after a look at whether they can be relied on; throws them away and
 * begins with none when they can't, or when `damage` says so.
 *
 * Beside the file lies `images.mdb-open` while it is open. If it is there at a start, the process before
 * was killed, or crashed, by whatever: then what it wrote is looked at first, or every page (see
 * {@link toLookAt}). It says which start of
 * the machine that was, since nothing is forced to the disk before the end: after another one, what
 * is there may be a mixture of old and new pages. And it counts starts in a row that ended before
 * their first write, should all this have missed something that lmdb dies of.
 *
 * @throws CellarstreamError `STATE_FOLDER` when the folder can't be read or written.
 */
export function openImageFile(
  folder: string,
  onDiscarded: OnDiscarded,
  damage?: CellarstreamError,
): ImageFile {
  const path = join(folder, 'images.mdb');
  const marker = `${path}-open`;
  const lock = `${path}-lock`;
  const discard = (reason: string): void => {
    for (const file of [path, lock, marker]) rmSync(file, { recursive: true, force: true });
    onDiscarded(reason);
  };
  const begin = (stillborn: number, looked: Looked): ImageFile => {
    const isPartly = typeof looked === 'object';
    const opened = { stillborn, since: newestTransaction(path), isPartly };
    writeFileSync(marker, markerText(opened), { mode: OWNER_ONLY.file });
    // lmdb maps its lock file with holes in it, and a hole on a full disk is a SIGBUS.
    rmSync(lock, { recursive: true, force: true });
    writeFileSync(lock, Buffer.alloc(LOCK_BYTES), { mode: OWNER_ONLY.file });
    makeOwnerOnly(path); // lmdb would let a group write it
    const root = open({ path, maxDbs: MAX_DATABASES, noSync: true });
    return imageFile(folder, root, opened);
  };
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY.folder });
    const left = readMarker(marker);
    const looked = toLookAt(left);
    const reason = damage ? describeError(damage) : reasonToDiscard(path, left, looked);
    if (reason !== undefined) discard(reason);
    const stillborn = reason === undefined && left ? left.stillborn + 1 : 1;
    try {
      return begin(stillborn, reason === undefined ? looked : 'none');
    } catch (error) {
      if (!isOfLmdb(error)) throw error;
      discard(describeError(error));
      return begin(1, 'none');
    }
  } catch (error) {
    throw folderError(folder, error);
  }
}

function imageFile(folder: string, root: RootDatabase, opened: Opened): ImageFile {
  const path = join(folder, 'images.mdb');
  const marker = `${path}-open`;
  let isProven = false;
  let isClosed = false;
  let damage: CellarstreamError | undefined;
  const sayStillborn = (stillborn: number): void => {
    try {
      // In its place: a disk may be full.
      writeFileSync(marker, markerText({ ...opened, stillborn }), { flag: 'r+' });
    } catch {
      // Then this start counts as stillborn, which costs a cache at the worst.
    }
  };
  return {
    damage: () => damage,
    use: (work) => {
      if (damage) throw damage;
      if (isClosed) throw new Error('the image store is closed');
      try {
        return work(root);
      } catch (error) {
        if (isOfLmdb(error)) throw (damage = damaged(describeError(error), error));
        if (error instanceof CellarstreamError && error.code === 'STATE_DAMAGED') damage = error;
        const told = folderError(folder, error);
        // lmdb has begun a line on stderr about it: log lines are not to go on there.
        if (told !== error) process.stderr.write('\n');
        throw told;
      }
    },
    proven: () => {
      if (isProven) return;
      isProven = true;
      sayStillborn(0);
    },
    close: async () => {
      isClosed = true;
      if (damage) sayStillborn(MAX_STILLBORN); // if nobody throws it away before this process ends
      await root.close();
      if (damage) return; // the next that opens it throws it away
      const file = await openFile(path);
      await file.sync().finally(() => file.close());
      rmSync(marker, { force: true });
    },
  };
}

interface Opened {
  readonly stillborn: number;
  /** The newest transaction then. */
  readonly since: bigint;
  /** Whether only later pages than those of some transaction had been looked at. */
  readonly isPartly: boolean;
}

interface Marker extends Opened {
  readonly machineStart: string;
}

/**
 * A process that had stored something and then was killed has left what was good when it opened it, and
 * what it has written since. If it ended so twice in a row, or before it had stored anything, it may have
 * died of the rest.
 */
function toLookAt(left: Marker | undefined): Looked {
  if (!left) return 'none';
  // Where nobody knows whether the machine was started anew, pages may be older than they say.
  const isSure = left.machineStart !== '' && left.machineStart !== UNKNOWN;
  return left.stillborn > 0 || left.isPartly || !isSure ? 'all' : { since: left.since };
}

function reasonToDiscard(
  path: string,
  left: Marker | undefined,
  looked: Looked,
): string | undefined {
  if (left && left.stillborn >= MAX_STILLBORN)
    return `${left.stillborn} starts ended before anything was stored`;
  if (left && left.machineStart !== '' && left.machineStart !== machineStart())
    return 'the machine was started anew while they were open';
  return damageIn(path, looked);
}

function markerText({ stillborn, since, isPartly }: Opened): string {
  return `${machineStart()} ${stillborn} ${since} ${isPartly ? 'partly' : 'wholly'}`;
}

/** Undefined when the file was closed by the process before, or was never open. */
function readMarker(marker: string): Marker | undefined {
  let text: string;
  try {
    text = readFileSync(marker, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const [machineStart = '', stillborn = 0, since = '', looked] = text.split(' '); // empty when the disk was full
  const count = Number(stillborn);
  return {
    machineStart,
    stillborn: Number.isInteger(count) ? count : MAX_STILLBORN,
    since: /^\d+$/.test(since) ? BigInt(since) : 0n,
    isPartly: looked !== 'wholly',
  };
}

const UNKNOWN = 'unknown';

/** A text that is another after each start of the machine, where that can be told. */
function machineStart(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return UNKNOWN; // no Linux: all of its pages are looked at
  }
}

/** Whether lmdb says of its file that it is wrong: its own codes are negative, errno is positive. */
function isOfLmdb(error: unknown): boolean {
  return error instanceof Error && 'code' in error && Number(error.code) < -30_000;
}

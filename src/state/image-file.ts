import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { open } from 'lmdb';
import type { RootDatabase } from 'lmdb';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { damaged } from './entries.ts';
import { folderError } from './folder-error.ts';
import { OpenMarker } from './open-marker.ts';
import { makeOwnerOnly, OWNER_ONLY } from './owner-only.ts';

/** Told when the images were thrown away, and why: they are read anew from Kafka. */
export type OnDiscarded = (reason: string) => void;

/** The file of images in a state folder. */
export const IMAGES = 'images.mdb';

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
  /** To be called after a write: a start that still writes after a while was not cut short. */
  readonly written: () => void;
  readonly close: () => Promise<void>;
}

const MAX_DATABASES = 1_024;
/** Larger than lmdb makes it. */
const LOCK_BYTES = 16_384;
/** lmdb may have written much before it meets a page that it dies of. */
const CUT_SHORT_MS = 10 * 60_000;

/**
 * Opens the images in a folder. They are thrown away first when they are known to be damaged, and when the
 * {@link OpenMarker} of the process before raises a doubt.
 *
 * lmdb trusts its pages: a wrong one may end the process, with SIGSEGV or SIGBUS. Damage that raises no doubt costs a
 * few starts that are cut short so, and these raise it.
 *
 * @throws CellarstreamError `STATE_FOLDER` when the folder can't be read or written.
 */
export function openImageFile(
  folder: string,
  onDiscarded: OnDiscarded,
  damage?: CellarstreamError,
): ImageFile {
  const path = join(folder, IMAGES);
  const lock = `${path}-lock`;
  const marker = new OpenMarker(`${path}-open`);
  const discard = (reason: string): void => {
    for (const file of [path, lock]) rmSync(file, { recursive: true, force: true });
    marker.remove();
    onDiscarded(reason);
  };
  const begin = (cutShort: number): ImageFile => {
    // lmdb maps its lock file with holes in it, and a hole on a full disk is a SIGBUS.
    rmSync(lock, { recursive: true, force: true });
    writeFileSync(lock, Buffer.alloc(LOCK_BYTES), { mode: OWNER_ONLY.file });
    makeOwnerOnly(path); // lmdb would let a group write it
    marker.write(cutShort);
    const root = open({ path, maxDbs: MAX_DATABASES, noSync: true });
    return imageFile(folder, root, marker);
  };
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY.folder });
    const left = marker.left();
    const reason = damage ? describeError(damage) : left?.doubt;
    if (reason !== undefined) discard(reason);
    return begin(reason === undefined && left ? left.cutShort + 1 : 1);
  } catch (error) {
    throw folderError(folder, error);
  }
}

function imageFile(folder: string, root: RootDatabase, marker: OpenMarker): ImageFile {
  const openedAt = performance.now();
  let isProven = false;
  let isClosed = false;
  let damage: CellarstreamError | undefined;
  const mark = (cutShort: number | 'damaged'): void => {
    try {
      marker.write(cutShort);
    } catch {
      // On a full disk this start counts as cut short, which costs a cache at the worst.
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
    written: () => {
      if (isProven || performance.now() - openedAt < CUT_SHORT_MS) return;
      isProven = true;
      mark(0);
    },
    close: async () => {
      isClosed = true;
      if (damage) mark('damaged'); // if nobody throws it away before this process ends
      await root.close();
      if (damage) return; // the next that opens it throws it away
      const file = await openFile(join(folder, 'images.mdb'));
      try {
        await file.sync();
      } catch (error) {
        mark('damaged'); // the system has dropped what the disk did not take
        throw error;
      } finally {
        await file.close();
      }
      marker.remove();
    },
  };
}

/** Whether lmdb says of its file that it is wrong: its own codes are negative, errno is positive. */
function isOfLmdb(error: unknown): boolean {
  return error instanceof Error && 'code' in error && Number(error.code) < -30_000;
}

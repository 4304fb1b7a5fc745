import { rmSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { CellarstreamError, describeError } from '../core/errors.ts';
import { damagedError } from './entries.ts';
import { OpenMarker } from './open-marker.ts';
import { folderError, inFolder, makeFolder, makeOwnerOnly, OWNER_ONLY } from './state-files.ts';

/** Callback after the image file was deleted, with the reason. The images are then restored from Kafka. */
export type OnDiscarded = (reason: string) => void;

export const IMAGES = 'images.mdb';

const MAX_DATABASES = 1_024;
/**
 * Size in bytes to which lmdb's lock file is filled, more than lmdb uses. If it is too small, the process ends with SIGBUS on a full disk.
 */
const LOCK_BYTES = 16_384;
/**
 * How long the image file must be open before the start of the service counts as successful, in ms. If it is too small, a damaged file that
 * crashes lmdb only after many writes is never suspected.
 */
const START_PROVEN_AFTER_MS = 10 * 60_000;

/**
 * Opens the image file in a folder. Deletes the file first if this process has detected damage in it, or if the {@link OpenMarker} of the
 * previous process says that the file can't be trusted.
 *
 * @param damage Damage that this process has detected in the file.
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
  return inFolder(folder, () => {
    makeFolder(folder);
    const left = marker.readUncleanShutdown();
    const reason = damage ? describeError(damage) : left?.doubt;
    if (reason !== undefined) {
      rmSync(path, { recursive: true, force: true });
      marker.remove();
      onDiscarded(reason);
    }
    // lmdb maps a sparse lock file, and writing to a hole on a full disk raises SIGBUS. So the file is filled beforehand.
    rmSync(lock, { recursive: true, force: true });
    writeFileSync(lock, Buffer.alloc(LOCK_BYTES), { mode: OWNER_ONLY });
    makeOwnerOnly(path); // lmdb would create it writable for the group
    // Abruptly ended starts are counted, because lmdb does not verify the pages of its file: a corrupt page may end the process with
    // SIGSEGV or SIGBUS.
    marker.write(reason === undefined && left ? left.shortStarts + 1 : 1);
    const root = open({ path, maxDbs: MAX_DATABASES, noSync: true });
    return new ImageFile(folder, root, marker);
  });
}

/** The opened image file, an lmdb database with the stored images of records. It is usable until it is closed or damage is detected. */
export class ImageFile {
  readonly #folder: string;
  readonly #root: RootDatabase;
  readonly #marker: OpenMarker;
  readonly #openedAt = performance.now();
  #isProven = false;
  #isClosed = false;
  #damage: CellarstreamError | undefined;

  constructor(folder: string, root: RootDatabase, marker: OpenMarker) {
    this.#folder = folder;
    this.#root = root;
    this.#marker = marker;
  }

  /** Damage that was detected in the image file; undefined if there is none. Reopening a damaged file deletes it first. */
  get damage(): CellarstreamError | undefined {
    return this.#damage;
  }

  /**
   * Runs `work` with the lmdb database.
   *
   * @throws CellarstreamError `STATE_DAMAGED` once any damage was detected: from then on the whole file counts as damaged. `STATE_FOLDER`
   * when the file can't be written; the next transaction may succeed.
   */
  use<T>(work: (root: RootDatabase) => T): T {
    if (this.#damage) throw this.#damage;
    if (this.#isClosed)
      throw new Error(
        'the store of published records was used after this process had closed it, because it stopped serving the account: what was not committed is read again at the next start',
      );
    try {
      return work(this.#root);
    } catch (error) {
      if (isLmdbError(error)) throw (this.#damage = damagedError(describeError(error), error));
      if (error instanceof CellarstreamError && error.code === 'STATE_DAMAGED')
        this.#damage = error;
      const reported = folderError(this.#folder, error);
      // lmdb has written an unfinished line to stderr: log lines must not continue it.
      if (reported !== error) process.stderr.write('\n');
      throw reported;
    }
  }

  /**
   * Resets the number of abruptly ended starts in the {@link OpenMarker}, once the image file has been open for ten minutes. To be called
   * after each write to the file.
   */
  markWritten(): void {
    if (this.#isProven || performance.now() - this.#openedAt < START_PROVEN_AFTER_MS) return;
    this.#isProven = true;
    this.#mark(0);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#damage) this.#mark('damaged'); // in case this process ends before it deletes the file
    await this.#root.close();
    if (this.#damage) return; // deleted when it is opened next
    const file = await openFile(join(this.#folder, IMAGES));
    try {
      await file.sync();
    } catch (error) {
      this.#mark('damaged'); // the operating system has dropped writes that the disk rejected
      throw error;
    } finally {
      await file.close();
    }
    this.#marker.remove();
  }

  #mark(cutShort: number | 'damaged'): void {
    try {
      this.#marker.write(cutShort);
    } catch {
      // On a full disk this start counts as ended abruptly; at worst the images are restored once more.
    }
  }
}

/** Whether an error is lmdb's own, about the content of its file. Such errors have a code below -30,000; errors of the system do not. */
function isLmdbError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && Number(error.code) < -30_000;
}

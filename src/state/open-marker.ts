import { readFileSync, rmSync, statSync } from 'node:fs';
import { replaceDurably } from './state-files.ts';

/**
 * Number of consecutive, abruptly ended starts of the service after which the image file is discarded, as the likely cause. If it is too
 * small, good images are discarded. If it is too large, the service crashes more often before a damaged file is discarded.
 */
const MAX_SHORT_STARTS = 3;
/**
 * Maximum difference between the time of writing in the text of the marker file and the file's `ctime`, in ms. If the difference is larger,
 * the file is a copy: the `ctime` of a copy is the time of copying.
 */
const MAX_APART_MS = 10_000;
const UNKNOWN = 'unknown';

/**
 * Marker file that exists while the image file is open. It contains the boot id of the machine, the number of consecutive starts of the
 * service that ended abruptly (including the current start until it has proved successful), and the time of writing.
 *
 * The image file is written without waiting for the disk: after a power failure, or in a copy of the open file, old and new pages may be
 * mixed. An image file that was not closed is therefore trusted only if all of these conditions are met:
 *
 * - the machine has certainly not been rebooted since (on systems other than Linux, this is unknown);
 * - the file is not a copy;
 * - no process has detected damage in the file;
 * - fewer than three starts in a row have ended abruptly.
 */
export class OpenMarker {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /**
   * Returns the content of the marker that a process left because it did not close the image file. Undefined if there is no marker.
   *
   * - `shortStarts`: number of consecutive starts of the service that ended abruptly. NaN if the process marked the image file as damaged.
   * - `doubt`: why the image file can't be trusted; undefined if it can.
   */
  readUncleanShutdown() {
    try {
      const words = readFileSync(this.#path, 'utf8').split(' ');
      const doubt = doubtAbout(words, statSync(this.#path).ctimeMs);
      return { shortStarts: Number(words[1]), doubt };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /**
   * Writes the marker file and syncs it to disk. To be called before the image file is written. If the call fails, as on a full disk, the
   * old marker remains.
   *
   * @param cutShort `damaged` if the image file is damaged. Otherwise the number of consecutive starts of the service that ended abruptly,
   * including the current start until it has proved successful.
   */
  write(cutShort: number | 'damaged'): void {
    replaceDurably(this.#path, `${bootId()} ${cutShort} ${Date.now()}`);
  }

  remove(): void {
    rmSync(this.#path, { recursive: true, force: true });
  }
}

/**
 * Returns why the image file can't be trusted; undefined if it can. First argument: the words of the marker file (boot id; number of
 * abruptly ended starts, or `damaged`; time of writing in epoch ms). `changedAt`: `ctime` of the marker file in epoch ms.
 */
function doubtAbout(
  [machine, count, writtenAt]: readonly string[],
  changedAt: number,
): string | undefined {
  if (machine !== bootId() || machine === UNKNOWN)
    return 'the machine may have been restarted while the images were open';
  const shortStarts = Number(count);
  if (!Number.isInteger(shortStarts)) return 'the previous process detected damaged images';
  // A file's change time can't be set by programs: for a copy it is the time of copying.
  const apart = Math.abs(changedAt - Number(writtenAt));
  if (!(apart <= MAX_APART_MS))
    return 'the images are a copy that was made while a process had them open';
  if (shortStarts >= MAX_SHORT_STARTS)
    return `the service ended abruptly after each of its last ${shortStarts} starts`;
  return undefined;
}

/** Returns an identifier that changes with each boot of the machine; `unknown` on systems without such an identifier. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return UNKNOWN; // not Linux
  }
}

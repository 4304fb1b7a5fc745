import {
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { OWNER_ONLY } from './owner-only.ts';

/** So many starts in a row that were cut short: then the file may be what ends them. */
const MAX_CUT_SHORT = 3;
/** Between the time that a marker tells and the one that the file system tells of it. */
const MAX_APART_MS = 10_000;
const UNKNOWN = 'unknown';

/** What a process that did not close the file has left. */
export interface LeftOpen {
  /** Starts in a row that were cut short, with that one. */
  readonly cutShort: number;
  /** Why the file can't be relied on; undefined when it can. */
  readonly doubt: string | undefined;
}

/**
 * Lies beside a file while that is open, and says which start of the machine this is, how many starts of the service in
 * a row were cut short, and when it was written.
 *
 * The file is written without waiting for the disk. That is no harm when a process is killed: the system has all that
 * was written. But a loss of power, or a copy that is made meanwhile, leaves a mixture of old and new pages. So a file
 * that was left open is good where it was left alone, and not anywhere else.
 */
export class OpenMarker {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined when the file was closed, or was never open. */
  left(): LeftOpen | undefined {
    try {
      return judged(readFileSync(this.#path, 'utf8'), statSync(this.#path).ctimeMs);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** On the disk when this returns, before anything of the file; where there is no room the old one stays. */
  write(cutShort: number | 'damaged'): void {
    const next = `${this.#path}-next`;
    const fd = openSync(next, 'w', OWNER_ONLY.file);
    try {
      writeFileSync(fd, `${machineStart()} ${cutShort} ${Date.now()}`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(next, this.#path);
    syncFolder(dirname(this.#path));
  }

  remove(): void {
    rmSync(this.#path, { recursive: true, force: true });
  }
}

function judged(marker: string, changedAt: number): LeftOpen {
  const [machine, count, writtenAt] = marker.split(' ');
  const cutShort = Number(count);
  const doubt = (): string | undefined => {
    if (machine !== machineStart() || machine === UNKNOWN)
      return 'the machine may have been started anew while they were open';
    if (!Number.isInteger(cutShort)) return 'the process before found them damaged';
    // Nobody can set the time of a file's last change: that of a copy is when it was made.
    const apart = Math.abs(changedAt - Number(writtenAt));
    if (!(apart <= MAX_APART_MS)) return 'they are a copy of images that were open';
    if (cutShort >= MAX_CUT_SHORT) return `${cutShort} starts in a row were cut short`;
    return undefined;
  };
  return { cutShort, doubt: doubt() };
}

/** A text that is another after each start of the machine, where that can be told. */
function machineStart(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return UNKNOWN; // no Linux
  }
}

/** Puts the names of its files on the disk. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return; // a folder can't be opened there
  const fd = openSync(folder, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

import {
  closeSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { OldestSlot } from './oldest-slot.ts';
import { inFolder, makeFolder, makeOwnerOnly, OWNER_ONLY } from './state-files.ts';

/**
 * Size of a slot in the file, and offset of the checksum within the slot, in bytes. A slot has the time of a request as a double, then the
 * checksum; an empty slot has zeros.
 */
const SLOT = { bytes: 12, checksum: 8 } as const;

/**
 * Opens the file with the times of the newest `capacity` requests, and creates it if it is absent. The times survive when the process is
 * killed. After a power failure, times may be missing; that does no harm, because a reboot takes longer than the quota's window.
 *
 * @throws CellarstreamError `STATE_FOLDER` when the file can't be opened.
 */
export function recentStarts(file: string, capacity: number): RecentStarts {
  const folder = dirname(file);
  const fd = inFolder(folder, () => {
    makeFolder(folder);
    makeOwnerOnly(file);
    return openSync(file, 'r+');
  });
  return new StartsFile(fd, capacity);
}

/** The public members of a {@link StartsFile}. */
export type RecentStarts = Pick<StartsFile, keyof StartsFile>;

/**
 * Times of the newest requests to the API, stored in a file so that the next process counts them against the quota. A failed write (usually
 * because of a full disk) truncates the file, so that the next process recognizes it as incomplete.
 */
class StartsFile {
  /** Times of requests to the API, in epoch ms, unsorted: those that the file contained when it was opened, without damaged ones. */
  readonly times: readonly number[];
  /** Whether `times` is complete. False if the file was absent, had another length, or contained a damaged time. */
  readonly isReliable: boolean;
  readonly #fd: number;
  readonly #bytes: Buffer;
  readonly #oldest: OldestSlot;
  /**
   * For each slot, a symbol for the request whose time this process has written to it; undefined if it has written none. The time of a
   * request can be corrected only while the slot has the request's symbol.
   */
  readonly #owners: (symbol | undefined)[];
  /**
   * Whether every slot in the file is valid, and equal to the slot in memory. If not, the next write writes all slots instead of only the
   * changed one.
   */
  #isWhole: boolean;
  /** Whether the file is open. Nothing is written once it is closed, as its descriptor may be reused for another file. */
  #isOpen = true;

  constructor(fd: number, capacity: number) {
    this.#fd = fd;
    this.#bytes = Buffer.alloc(capacity * SLOT.bytes);
    const isSized = fstatSync(fd).size === this.#bytes.length;
    if (isSized) readSync(fd, this.#bytes, 0, this.#bytes.length, 0);
    const slots = Array.from({ length: capacity }, (_, slot) => timeIn(this.#bytes, slot));
    const ages = slots.map((at) => at ?? 0); // damaged and empty slots count as the oldest
    this.times = ages.filter((at) => at > 0);
    this.isReliable = isSized && !slots.includes(undefined);
    this.#isWhole = this.isReliable;
    this.#oldest = new OldestSlot(ages);
    this.#owners = slots.map(() => undefined);
    if (!this.isReliable) for (const [slot, at] of ages.entries()) putTime(this.#bytes, slot, at);
  }

  /**
   * Writes the time of a request, in epoch ms, to the file in place of the oldest stored time. Does not wait until the disk has it.
   *
   * @returns Function that replaces this time by a later one. It does nothing if the slot has been given to a newer request.
   */
  add(at: number): (later: number) => void {
    const slot = this.#put(at);
    const owner = this.#owners[slot];
    this.#writeSlot(slot);
    return (later) => {
      if (this.#owners[slot] !== owner) return; // overwritten by a newer time
      this.#set(slot, later);
      this.#writeSlot(slot);
    };
  }

  /**
   * Stores the times of several requests with a single write. A time that is later than the oldest stored one replaces it; any other time
   * is ignored.
   */
  addAll(times: readonly number[]): void {
    for (const at of times) if (at > this.#oldest.time) this.#put(at);
    this.#write(0, this.#bytes.length);
  }

  close(): void {
    this.#isOpen = false;
    closeSync(this.#fd);
  }

  /** Replaces the oldest stored time by `at`, in memory only. Returns the slot of the time. */
  #put(at: number): number {
    const { slot } = this.#oldest;
    this.#owners[slot] = Symbol();
    this.#set(slot, at);
    return slot;
  }

  #set(slot: number, at: number): void {
    this.#oldest.set(slot, at);
    putTime(this.#bytes, slot, at);
  }

  #writeSlot(slot: number): void {
    if (this.#isWhole) this.#write(slot * SLOT.bytes, SLOT.bytes);
    else this.#write(0, this.#bytes.length);
  }

  #write(from: number, length: number): void {
    if (!this.#isOpen) return;
    try {
      this.#isWhole = writeSync(this.#fd, this.#bytes, from, length, from) === length;
    } catch {
      this.#isWhole = false; // usually a full disk
    }
    if (this.#isWhole) return;
    try {
      ftruncateSync(this.#fd);
    } catch {
      // The disk accepts no change at all: nothing more can be done.
    }
  }
}

/** Returns the time of a request that a slot of the file contains, in epoch ms: 0 if the slot is empty, undefined if it is damaged. */
function timeIn(bytes: Buffer, slot: number): number | undefined {
  const from = slot * SLOT.bytes;
  const at = bytes.readDoubleLE(from);
  const checksum = bytes.readUInt32LE(from + SLOT.checksum);
  if (at === 0 && checksum === 0) return 0;
  return checksum === crc32(bytes.subarray(from, from + SLOT.checksum)) ? at : undefined;
}

function putTime(bytes: Buffer, slot: number, at: number): void {
  const from = slot * SLOT.bytes;
  bytes.writeDoubleLE(at, from);
  const checksum = at === 0 ? 0 : crc32(bytes.subarray(from, from + SLOT.checksum));
  bytes.writeUInt32LE(checksum, from + SLOT.checksum);
}

/**
 * Returns functions that read and write a file that contains the name of the instance that stored the request times in the same folder
 * ({@link recentStarts}). If the newest declaration in the ledger topic is by this instance, the stored times include the declared
 * requests.
 */
export function ledgerWriter(file: string) {
  const folder = dirname(file);
  return {
    /** Returns the name of the instance; undefined if the file is absent or unreadable. */
    get: (): string | undefined => {
      try {
        return readFileSync(file, 'utf8');
      } catch {
        return undefined;
      }
    },
    /**
     * Writes the name of the instance to the file. When the call returns, the operating system has the name, so a crash of the process does
     * not lose it.
     */
    set: (instance: string): void =>
      inFolder(folder, () => {
        makeFolder(folder);
        writeFileSync(`${file}.new`, instance, { mode: OWNER_ONLY });
        renameSync(`${file}.new`, file);
      }),
  };
}

export type LedgerWriter = Readonly<ReturnType<typeof ledgerWriter>>;

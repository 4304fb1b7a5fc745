import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { crc32 } from 'node:zlib';
import { folderError } from './folder-error.ts';
import { oldestSlot } from './oldest-slot.ts';
import { makeOwnerOnly, OWNER_ONLY } from './owner-only.ts';

/** The times of the newest requests, kept in a file so that a new process knows of them. */
export interface RecentStarts {
  /** Times in ms since the epoch, in no order. */
  readonly times: readonly number[];
  /** False when there was no file, or one that can't be believed: requests may have gone unseen. */
  readonly known: boolean;
  /**
   * Keeps a time in the place of the oldest. The kernel has it when this returns; or, when the disk is
   * full, a file that the next process does not believe. What it gives back puts a later time in
   * that place.
   */
  readonly add: (at: number) => (later: number) => void;
  /** Keeps those of many that are newer than what they take the place of, with one write. */
  readonly addAll: (times: readonly number[]) => void;
  /** Closes its file. */
  readonly close: () => void;
}

/** A time as a double, and its checksum; zeros before the first. */
const SLOT = { bytes: 12, checksum: 8 } as const;

/**
 * A ring of `capacity` times in a file of twelve bytes each: one small write a request, which
 * survives a killed process. (Not a killed machine, whose start takes longer than the window.)
 * A file of another length is another quota's, or damaged: it is not believed, nor is one with a
 * damaged time; the other times still count.
 *
 * @throws CellarstreamError `STATE_FOLDER` when the file can't be opened.
 */
export function recentStarts(file: string, capacity: number): RecentStarts {
  const ring = openRing(file);
  const bytes = Buffer.alloc(capacity * SLOT.bytes);
  const isSized = fstatSync(ring).size === bytes.length;
  if (isSized) readSync(ring, bytes, 0, bytes.length, 0);

  const slots = Array.from({ length: capacity }, (_, slot) => timeIn(bytes, slot));
  const times = slots.filter((at) => at !== undefined).filter((at) => at > 0);
  const known = isSized && !slots.includes(undefined);
  /** Damaged and empty ones are the oldest. */
  const ages = slots.map((at) => at ?? 0);
  const oldest = oldestSlot(ages);
  const owners: (symbol | undefined)[] = slots.map(() => undefined);
  if (!known) for (const [slot, at] of ages.entries()) putTime(bytes, slot, at);

  let isWhole = known; // what is not stays as it is until the first is added: so long it is unknown
  let isOpen = true; // closed, its number is soon that of another file
  const write = (from: number, length: number): void => {
    if (!isOpen) return;
    try {
      isWhole = writeSync(ring, bytes, from, length, from) === length;
    } catch {
      isWhole = false; // a full disk, most of the time
    }
    if (isWhole) return;
    try {
      ftruncateSync(ring); // to be written whole with the next; till then nobody must believe it
    } catch {
      // A disk that takes no change at all: nothing more can be done about it.
    }
  };
  /** In the place of the oldest, in memory; gives what puts a later time there, and says where unless it is somebody else's by now. */
  const place = (at: number) => {
    const slot = oldest.get();
    const owner = Symbol();
    owners[slot] = owner;
    const put = (time: number): number | undefined => {
      if (owners[slot] !== owner) return undefined; // somebody newer has the place
      oldest.set(slot, time);
      putTime(bytes, slot, time);
      return slot;
    };
    put(at);
    return { slot, put };
  };
  const writeSlot = (slot: number) => {
    if (isWhole) write(slot * SLOT.bytes, SLOT.bytes);
    else write(0, bytes.length);
  };
  return {
    times,
    known,
    add: (at) => {
      const { slot, put } = place(at);
      writeSlot(slot);
      return (later) => {
        if (put(later) !== undefined) writeSlot(slot);
      };
    },
    addAll: (times) => {
      for (const at of times) if (at > oldest.time()) place(at);
      write(0, bytes.length);
    },
    close: () => {
      isOpen = false;
      closeSync(ring);
    },
  };
}

function openRing(file: string): number {
  const folder = dirname(file);
  try {
    mkdirSync(folder, { recursive: true, mode: OWNER_ONLY.folder });
    makeOwnerOnly(file);
    return openSync(file, 'r+');
  } catch (error) {
    throw folderError(folder, error);
  }
}

/** Zero when there was none yet; undefined when it is damaged. */
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

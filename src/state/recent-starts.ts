// Stores the times of the newest requests to the API, so that the quota also holds after a restart.

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

/** Times of the newest requests to the API, stored in a file so that the next process counts them against the quota. */
export interface RecentStarts {
  /** Times of requests that the file contained when it was opened, in epoch ms, in no particular order. */
  readonly times: readonly number[];
  /** Whether the stored times are complete. False if there was no file, or an invalid one: some requests may be missing. */
  readonly isReliable: boolean;
  /**
   * Stores the time of a request, in epoch ms, in place of the oldest one. The kernel has it when the call returns; if the disk is full,
   * the file is left invalid for the next process. The returned function corrects the stored time to a later one.
   */
  readonly add: (at: number) => (later: number) => void;
  /** Adds the times of several requests with a single write. Each replaces the oldest stored time, unless it is older itself. */
  readonly addAll: (times: readonly number[]) => void;
  /** Closes the file. */
  readonly close: () => void;
}

/** Layout of a slot of the file in bytes: the time of a request as a double, then its checksum; zeros if the slot is empty. */
const SLOT = { bytes: 12, checksum: 8 } as const;

/**
 * Opens the file with the times of the newest `capacity` requests: a ring buffer of twelve bytes for each time. Each request costs one
 * small write, which survives a killed process. (Not a power failure, but a reboot takes longer than the quota's window.) A file of another
 * length belongs to another quota or is damaged, so it is not reliable and its times are ignored. A file with a damaged time is not
 * reliable either, but its other times are returned.
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
  const isReliable = isSized && !slots.includes(undefined);
  /** Time of each slot, by slot number; 0 for damaged and empty slots, so that they count as the oldest. */
  const ages = slots.map((at) => at ?? 0);
  const oldest = oldestSlot(ages);
  const owners: (symbol | undefined)[] = slots.map(() => undefined);
  if (!isReliable) for (const [slot, at] of ages.entries()) putTime(bytes, slot, at);

  let isWhole = isReliable; // an incomplete file stays invalid until the first time is added
  let isOpen = true; // after closing, the descriptor may be reused for another file
  const write = (from: number, length: number): void => {
    if (!isOpen) return;
    try {
      isWhole = writeSync(ring, bytes, from, length, from) === length;
    } catch {
      isWhole = false; // usually a full disk
    }
    if (isWhole) return;
    try {
      ftruncateSync(ring); // invalid until the next write, which writes all slots
    } catch {
      // The disk accepts no change at all: nothing more can be done.
    }
  };
  /**
   * Stores a time in place of the oldest one, in memory only, and returns its slot. The returned function `put` replaces that time by a
   * later one; it returns the slot, or undefined if the slot has been overwritten since.
   */
  const place = (at: number) => {
    const slot = oldest.get();
    const owner = Symbol();
    owners[slot] = owner;
    const put = (time: number): number | undefined => {
      if (owners[slot] !== owner) return undefined; // overwritten by a newer time
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
    isReliable,
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

/** Reads the time of a slot from the bytes of the file: zero if it is empty, undefined if it is damaged. */
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

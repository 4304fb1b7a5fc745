import { closeSync, existsSync, mkdirSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

/** The times of the newest requests, kept in a file so that a new process knows of them. */
export interface RecentStarts {
  /** Times in ms since the epoch, in no order. */
  readonly times: readonly number[];
  /** False when there was no file, or one that can't be believed: requests may have gone unseen. */
  readonly known: boolean;
  /** Keeps a time in the place of the oldest. The kernel has it when this returns. */
  readonly add: (at: number) => void;
  readonly close: () => void;
}

const BYTES = 8;

/**
 * A ring of `capacity` times in a file of eight bytes each: one small write a request, which
 * survives a killed process. (Not a killed machine, whose start takes longer than the window.)
 * A file of another length is another quota's, or damaged: it is not believed.
 */
export function recentStarts(file: string, capacity: number): RecentStarts {
  mkdirSync(dirname(file), { recursive: true });
  const bytes = Buffer.alloc(capacity * BYTES);
  const known = existsSync(file) && statSync(file).size === bytes.length;
  const ring = openSync(file, known ? 'r+' : 'w+');
  if (known) readSync(ring, bytes, 0, bytes.length, 0);
  else writeSync(ring, bytes);

  const slots = Array.from({ length: capacity }, (_, slot) => bytes.readDoubleLE(slot * BYTES));
  const times = slots.filter((at) => Number.isFinite(at) && at > 0);
  // Empty ones first, then the oldest.
  let next = slots.indexOf(slots.reduce((oldest, at) => Math.min(oldest, at)));
  const one = Buffer.alloc(BYTES);

  return {
    times,
    known,
    add: (at) => {
      one.writeDoubleLE(at);
      writeSync(ring, one, 0, BYTES, next * BYTES);
      next = (next + 1) % capacity;
    },
    close: () => closeSync(ring),
  };
}

export interface TimeSlotsOptions<T> {
  /** How long a slot is, ms. */
  readonly everyMs: number;
  /** Complete slots that are kept; the one that runs is one more. */
  readonly count: number;
  /** The clock: ms, which never goes back. */
  readonly now: () => number;
  /** What an empty slot holds. */
  readonly empty: () => T;
}

/** Something for each stretch of time, of which the newest are kept. */
export interface TimeSlots<T> {
  /** Of the slot that runs: to be added to. */
  readonly current: () => T;
  /** Of the complete slots, the oldest first; always as many. */
  readonly past: () => readonly T[];
  /** When the newest complete slot ended, ms. */
  readonly endsAt: () => number;
}

/** Slots begin at multiples of their length. Those before the first value are empty. */
export function timeSlots<T>({ everyMs, count, now, empty }: TimeSlotsOptions<T>): TimeSlots<T> {
  const slots = Array.from({ length: count + 1 }, empty);
  let running = Math.floor(now() / everyMs);
  const goOn = () => {
    const slot = Math.floor(now() / everyMs);
    for (let behind = Math.min(slot - running, slots.length); behind > 0; behind--) {
      slots.shift();
      slots.push(empty());
    }
    running = Math.max(running, slot);
  };
  return {
    current: () => {
      goOn();
      return slots[count]!;
    },
    past: () => {
      goOn();
      return slots.slice(0, count);
    },
    endsAt: () => {
      goOn();
      return running * everyMs;
    },
  };
}

// A heap that finds the slot with the earliest time in a ring buffer.

/** Finds the slot of a ring buffer that has the earliest time, and so is to be overwritten next. */
export interface OldestSlot {
  /** Returns the slot with the earliest time; the lowest-numbered one if there are several. */
  readonly get: () => number;
  /** Returns the earliest time of all slots. */
  readonly time: () => number;
  /** Sets the time of a slot. */
  readonly set: (slot: number, at: number) => void;
}

/**
 * Creates a binary heap of the slots of a ring buffer, ordered by time: `times[n]` is the time of slot n. An update takes logarithmic time.
 */
export function oldestSlot(times: readonly number[]): OldestSlot {
  const at = [...times];
  const heap = at.map((_, slot) => slot);
  const places = [...heap];

  const isBefore = (a: number, b: number) => at[a]! < at[b]! || (at[a] === at[b] && a < b);
  const put = (slot: number, place: number) => {
    heap[place] = slot;
    places[slot] = place;
  };
  const rise = (slot: number): void => {
    let place = places[slot]!;
    while (place > 0) {
      const above = (place - 1) >>> 1;
      if (!isBefore(slot, heap[above]!)) break;
      put(heap[above]!, place);
      place = above;
    }
    put(slot, place);
  };
  const sink = (slot: number): void => {
    let place = places[slot]!;
    for (;;) {
      const [left, right] = [2 * place + 1, 2 * place + 2];
      if (left >= heap.length) break;
      const isRight = right < heap.length && isBefore(heap[right]!, heap[left]!);
      const below = isRight ? right : left;
      if (!isBefore(heap[below]!, slot)) break;
      put(heap[below]!, place);
      place = below;
    }
    put(slot, place);
  };
  for (let place = (heap.length >>> 1) - 1; place >= 0; place--) sink(heap[place]!);
  return {
    get: () => heap[0]!,
    time: () => at[heap[0]!]!,
    set: (slot, time) => {
      at[slot] = time;
      rise(slot);
      sink(slot);
    },
  };
}

// The newest message of each key of a topic, read once for all who ask.

import type { Bounds, KeyedMessage, Known } from './sink.ts';

/** The newest message of each key of a topic that has one partition: read once, however many ask. */
export interface NewestByKey<M> {
  /**
   * What is known, once that is all that stands before the end which `bounds` finds, or more. Who asks while something is
   * read waits for that reading.
   *
   * @throws what `bounds` and the reading do; what was read until then stays known.
   */
  readonly asOf: (bounds: () => Promise<Bounds>) => Promise<Known<M>>;
  /** What was read lacks what must be there: it is not of this topic, but of one that had its name. */
  readonly forget: () => void;
}

interface NewestByKeyOptions<M> {
  /** Hands over the messages from one offset to another, in order. */
  readonly read: (range: Bounds, onMessages: (messages: readonly M[]) => void) => Promise<void>;
  /** A clock that only goes forward, ms. Default `performance.now`. */
  readonly now?: () => number;
}

/**
 * What nobody has asked for in so long is forgotten, ms: the topic may have been made anew meanwhile, and be longer than it
 * was.
 */
const KEPT_MS = 600_000;

/** Reads nothing yet. */
export function newestByKey<M extends KeyedMessage>(
  options: NewestByKeyOptions<M>,
): NewestByKey<M> {
  const { read, now = () => performance.now() } = options;
  let reading = nothingRead<M>();
  let askedAt = now();

  return {
    asOf: async (bounds) => {
      if (now() - askedAt > KEPT_MS) reading = nothingRead();
      askedAt = now();
      const before = reading;
      const { next } = before; // others may read on while the end is found
      const { low, high } = await bounds();
      const isAnew = high < next;
      if (isAnew && reading === before) reading = nothingRead();
      const mine = reading;
      await readUpTo(mine, { low, high }, read);
      return { newest: mine.newest, next: mine.next };
    },
    forget: () => void (reading = nothingRead()),
  };
}

/** How far a topic has been read. */
interface Reading<M> {
  readonly newest: Map<string, M & { readonly value: Buffer }>;
  next: bigint;
  /** The farthest end that anybody waits for. */
  wanted: bigint;
  underWay: Promise<void> | undefined;
}

function nothingRead<M>(): Reading<M> {
  return { newest: new Map(), next: 0n, wanted: 0n, underWay: undefined };
}

type Read<M> = NewestByKeyOptions<M>['read'];

/** One reading at a time, each as far as anybody wants it as it begins. */
async function readUpTo<M extends KeyedMessage>(
  reading: Reading<M>,
  { low, high }: Bounds,
  read: Read<M>,
): Promise<void> {
  if (reading.wanted < high) reading.wanted = high;
  while (reading.next < high) {
    reading.underWay ??= readOn(reading, low, read).finally(() => (reading.underWay = undefined));
    await reading.underWay;
  }
}

async function readOn<M extends KeyedMessage>(
  reading: Reading<M>,
  low: bigint,
  read: Read<M>,
): Promise<void> {
  const { newest, next, wanted } = reading;
  try {
    await read({ low: next > low ? next : low, high: wanted }, (messages) => {
      for (const message of messages) {
        const { key, value, offset } = message;
        reading.next = BigInt(offset) + 1n;
        if (key === null) continue;
        if (value) newest.set(key.toString(), { ...message, value });
        else newest.delete(key.toString());
      }
    });
    reading.next = wanted;
  } catch (error) {
    reading.wanted = reading.next; // of a topic that was made anew it may have been too far
    throw error;
  }
}

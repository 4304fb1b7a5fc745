// The newest message of each key of a compacted topic, read once and shared by all callers.

import type { Bounds, KeyedMessage, Known } from '../log.ts';

/** The newest message of each key of a topic with one partition. Concurrent callers share one read of the topic. */
export interface CompactedView<M> {
  /**
   * Returns the newest message of each key, once everything before the end offset that `bounds` returns has been read; possibly with
   * messages after that offset. Callers that arrive during a read wait for it.
   *
   * @throws the errors of `bounds` and of the read. Messages that were read before the error stay cached.
   */
  readonly asOf: (bounds: () => Promise<Bounds>) => Promise<Known<M>>;
  /** Drops the cached messages. Called if a message that must exist is not among them: they belong to a deleted topic of the same name. */
  readonly invalidate: () => void;
}

interface CompactedViewOptions<M> {
  /** Reads the messages from offset `low` up to `high`, and passes them to `onMessages` in order. */
  readonly read: (range: Bounds, onMessages: (messages: readonly M[]) => void) => Promise<void>;
  /** Returns the time of a monotonic clock, in ms. Default: `performance.now`. */
  readonly now?: () => number;
}

/**
 * Time without a caller after which cached messages are dropped, in ms. Too large: the topic may have been recreated and outgrown the
 * cached end, so that the old messages pass for those of the new topic.
 */
const RETENTION_MS = 600_000;

/** Creates a view of a topic. Nothing is read before the first call of `asOf`. */
export function compactedView<M extends KeyedMessage>(
  options: CompactedViewOptions<M>,
): CompactedView<M> {
  const { read, now = () => performance.now() } = options;
  let reading = emptyViewState<M>();
  let askedAt = now();

  return {
    asOf: async (bounds) => {
      if (now() - askedAt > RETENTION_MS) reading = emptyViewState();
      askedAt = now();
      const before = reading;
      const { next } = before; // other callers may read further while `bounds` is pending
      const { low, high } = await bounds();
      const isAnew = high < next;
      if (isAnew && reading === before) reading = emptyViewState();
      const mine = reading;
      await readUpTo(mine, { low, high }, read);
      return { newest: mine.newest, next: mine.next };
    },
    invalidate: () => void (reading = emptyViewState()),
  };
}

/** The cached messages of a topic, and the offset up to which it has been read. */
interface ViewState<M> {
  readonly newest: Map<string, M & { readonly value: Buffer }>;
  next: bigint;
  /** Highest end offset that any caller has requested. */
  requestedEnd: bigint;
  inFlight: Promise<void> | undefined;
}

function emptyViewState<M>(): ViewState<M> {
  return { newest: new Map(), next: 0n, requestedEnd: 0n, inFlight: undefined };
}

type RangeReader<M> = CompactedViewOptions<M>['read'];

/**
 * Reads the topic up to the offset `high`. One read runs at a time, each up to the highest end that callers have requested when it begins.
 */
async function readUpTo<M extends KeyedMessage>(
  reading: ViewState<M>,
  { low, high }: Bounds,
  read: RangeReader<M>,
): Promise<void> {
  if (reading.requestedEnd < high) reading.requestedEnd = high;
  while (reading.next < high) {
    reading.inFlight ??= readFrom(reading, low, read).finally(() => (reading.inFlight = undefined));
    await reading.inFlight;
  }
}

async function readFrom<M extends KeyedMessage>(
  reading: ViewState<M>,
  low: bigint,
  read: RangeReader<M>,
): Promise<void> {
  const { newest, next, requestedEnd } = reading;
  try {
    await read({ low: next > low ? next : low, high: requestedEnd }, (messages) => {
      for (const message of messages) {
        const { key, value, offset } = message;
        reading.next = BigInt(offset) + 1n;
        if (key === null) continue;
        if (value) newest.set(key.toString(), { ...message, value });
        else newest.delete(key.toString());
      }
    });
    reading.next = requestedEnd;
  } catch (error) {
    reading.requestedEnd = reading.next; // if the topic was recreated, the requested end may be past its end
    throw error;
  }
}

// The newest message of each key of a compacted topic, read once and shared by all callers.

import type { Bounds, KeyedMessage, Known } from '../log.ts';

/** Reads the messages from offset `low` up to but not including `high`, and passes them to `onMessages` in order. */
type ReadRange<M> = (range: Bounds, onMessages: (messages: readonly M[]) => void) => Promise<void>;

/**
 * The cached messages of a topic. `next`: first offset that has not been read. A read in progress still fills an object that the view has
 * dropped.
 */
interface CachedContent<M> {
  readonly newest: Map<string, M & { readonly value: Buffer }>;
  next: bigint;
  /** Highest end offset that any caller has requested. A failed read sets it back to the offset that the read has reached. */
  requestedEnd: bigint;
  inFlight: Promise<void> | undefined;
}

/**
 * A {@link CompactedView} that was not called for this time, in ms, drops its cached messages at the next call. If it is too small, the
 * topic is read again often. If it is too large, messages of a deleted topic are mistaken for those of a new topic with the same name.
 */
const RETENTION_MS = 600_000;

/** The newest message of each key of a topic with one partition. Concurrent callers share one read of the topic. */
export class CompactedView<M extends KeyedMessage> {
  readonly #read: ReadRange<M>;
  readonly #now: () => number;
  #content = emptyContent<M>();
  #usedAt: number;

  /** @param now Returns the time of a monotonic clock, in ms. */
  constructor(read: ReadRange<M>, now = () => performance.now()) {
    this.#read = read;
    this.#now = now;
    this.#usedAt = now();
  }

  /**
   * Returns the newest message of each key, once all messages before the end offset that `bounds` returns have been read. The result may
   * include later messages.
   *
   * @throws the errors of `bounds` and of the read.
   */
  async asOf(bounds: () => Promise<Bounds>): Promise<Known<M>> {
    if (this.#now() - this.#usedAt > RETENTION_MS) this.invalidate();
    this.#usedAt = this.#now();
    const before = this.#content;
    const { next } = before; // other callers may read further while `bounds` is pending
    const range = await bounds();
    if (range.high < next && this.#content === before) this.invalidate(); // the topic was recreated
    const content = this.#content;
    await this.#readUpTo(content, range);
    return { newest: content.newest, next: content.next };
  }

  /**
   * Drops the cached messages. To be called if a message that must exist is missing: the cached messages are then of a deleted topic with
   * the same name.
   */
  invalidate(): void {
    this.#content = emptyContent();
  }

  /**
   * Reads the topic until all messages before the end offset `high` are cached. `low`: first offset of the topic. Concurrent callers share
   * one read.
   */
  async #readUpTo(content: CachedContent<M>, { low, high }: Bounds): Promise<void> {
    if (content.requestedEnd < high) content.requestedEnd = high;
    while (content.next < high) {
      content.inFlight ??= this.#readOn(content, low).finally(() => (content.inFlight = undefined));
      await content.inFlight;
    }
  }

  async #readOn(content: CachedContent<M>, low: bigint): Promise<void> {
    const { newest, next, requestedEnd } = content;
    try {
      await this.#read({ low: next > low ? next : low, high: requestedEnd }, (messages) => {
        for (const message of messages) {
          const { key, value, offset } = message;
          content.next = BigInt(offset) + 1n;
          if (key === null) continue;
          if (value) newest.set(key.toString(), { ...message, value });
          else newest.delete(key.toString());
        }
      });
      content.next = requestedEnd;
    } catch (error) {
      content.requestedEnd = content.next; // if the topic was recreated, the requested end may be past its end
      throw error;
    }
  }
}

function emptyContent<M>(): CachedContent<M> {
  return { newest: new Map(), next: 0n, requestedEnd: 0n, inFlight: undefined };
}

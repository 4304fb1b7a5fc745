// Positions in a topic, and how `from` and `to` of a replay are resolved to offsets.

import type { Kafka } from 'kafkajs';
import { CellarstreamError } from '../core/errors.ts';
import type { Range } from '../kafka/fetch/kafka-reader.ts';
import type { Offsets, Bounds } from '../kafka/log.ts';
import { offsetsSince, topicBounds } from '../kafka/client/topic-facts.ts';

/**
 * A position in a topic: for each partition, the decimal offset of the next message to read. Plain JSON, to be stored with your results.
 */
export type TopicPosition = object & Readonly<Record<number, string>>; // `object` excludes strings, which are indexed by numbers too

/**
 * Where a replay begins:
 *
 * - `beginning`: at the oldest message;
 * - `latest`: after the newest message that exists when the replay starts;
 * - a Date: with the messages published at that time or later;
 * - a position: at the offset of each partition; partitions that the position does not contain begin at their oldest message.
 */
export type From = 'beginning' | 'latest' | Date | TopicPosition;

/**
 * Where a replay ends:
 *
 * - `latest`: after the last message that exists when the replay starts;
 * - `never`: the replay continues with new messages as they are published;
 * - a Date: in each partition, before the first message published at that time or later, and no later than `latest`;
 * - a position: before the offset of each partition; partitions that the position does not contain end as with `latest`.
 */
export type To = 'latest' | 'never' | Date | TopicPosition;

/**
 * Advances a position past a message that has been processed: returns a copy of the position in which the message's partition has the
 * offset after the message.
 */
export function positionAfter(
  position: TopicPosition,
  { partition, offset }: { readonly partition: number; readonly offset: string },
): TopicPosition {
  return { ...position, [partition]: (BigInt(offset) + 1n).toString() };
}

/**
 * Returns the first and the end offset of a replay for each partition. Unless `to` is a position, the end offsets are the current ends. If
 * `to` is a Date, `before` of the result is its time, in epoch ms.
 *
 * @throws CellarstreamError `POSITION` if the topic does not exist, a Date is invalid, or a position does not fit the topic.
 */
export async function resolveRange(
  kafka: Kafka,
  topic: string,
  from: From,
  to: To,
): Promise<Range> {
  const bounds = await topicBounds({ kafka }, topic, MISSING_TOPIC_ADVICE);
  const pick = (of: 'low' | 'high') =>
    new Map([...bounds].map(([partition, bound]) => [partition, bound[of]]));

  const starts =
    from === 'beginning'
      ? pick('low')
      : from === 'latest'
        ? pick('high')
        : isInstant(from)
          ? await offsetsAt(kafka, topic, bounds, from)
          : offsetsOf(from, pick('low'), bounds, topic);
  const ends =
    typeof to === 'string' || isInstant(to)
      ? pick('high') // a Date is compared with each message's own timestamp: transaction markers carry the broker's time
      : offsetsOf(to, pick('high'), bounds, topic);
  return { from: starts, ends, ...(to instanceof Date && { before: to.getTime() }) };
}

/** Advice in the error for a topic that does not exist. */
export const MISSING_TOPIC_ADVICE =
  'check that TOPIC_PREFIX is that of the service (`cellarstream run`), which creates the topics';

/**
 * Whether the begin or the end of a replay is given as a Date, not as a position.
 *
 * @throws CellarstreamError `POSITION` for an invalid Date.
 */
function isInstant(place: Date | TopicPosition): place is Date {
  if (!(place instanceof Date)) return false;
  if (!Number.isNaN(place.getTime())) return true;
  throw new CellarstreamError(
    'POSITION',
    'the Date object to begin or to end at is invalid: its time is NaN',
  );
}

/**
 * Returns, for each partition, the offset of the first message published at `instant` or later; if there is none, the end of the partition.
 */
async function offsetsAt(
  kafka: Kafka,
  topic: string,
  bounds: ReadonlyMap<number, Bounds>,
  instant: Date,
): Promise<Offsets> {
  const found = await offsetsSince({ kafka }, topic, instant.getTime());
  return new Map(
    [...bounds].map(([partition, { high }]) => {
      const offset = found.get(partition) ?? high;
      return [partition, offset < high ? offset : high];
    }),
  );
}

function offsetsOf(
  position: TopicPosition,
  otherwise: Offsets,
  bounds: ReadonlyMap<number, Bounds>,
  topic: string,
): Offsets {
  const offsets = new Map(otherwise);
  for (const [name, text] of Object.entries(position)) {
    const partition = Number(name);
    const known = /^\d+$/.test(name) ? bounds.get(partition) : undefined;
    const refuse = (why: string): never => {
      const context = { topic, partition };
      throw new CellarstreamError('POSITION', `${name}:${text}: ${why}`, { context });
    };
    if (!known) return refuse(`${topic} has the partitions 0 to ${bounds.size - 1}`);
    const { low, high } = known;
    if (!/^\d+$/.test(text)) return refuse('an offset is a whole number');
    const offset = BigInt(text);
    if (offset > high)
      refuse(`partition ${partition} of ${topic} ends at ${high}: give that offset or a lower one`);
    if (offset < low) {
      refuse(
        `partition ${partition} of ${topic} begins at ${low}, because earlier messages were deleted: begin there or later`,
      );
    }
    offsets.set(partition, offset);
  }
  return offsets;
}

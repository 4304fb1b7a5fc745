// Places in a topic: what `from` and `to` of a replay are in offsets.

import type { Kafka } from 'kafkajs';
import { CellarstreamError } from '../core/errors.ts';
import type { Range } from '../sinks/fetch/kafka-reader.ts';
import type { Offsets, Bounds } from '../sinks/sink.ts';
import { offsetsSince, topicBounds } from '../sinks/client/topic-facts.ts';

/**
 * A place in a topic: by partition, the offset of the next message to read, in decimal. Plain JSON,
 * to be kept wherever the results are kept. Partitions that are not in it are read from their
 * beginning.
 */
export type TopicPosition = object & Readonly<Record<number, string>>; // no text, which has numbers too

/** Where a replay begins: at an instant means with what was published at it or later. */
export type From = 'beginning' | 'latest' | Date | TopicPosition;

/**
 * Where a replay ends: `latest` is the end as of now; an instant is before the first message of each
 * partition that was published at it or later, or at the end as of now; a position is before the
 * messages that it names, and at the end as of now where it does not have a partition. `never` goes on
 * with what is published from now on.
 */
export type To = 'latest' | 'never' | Date | TopicPosition;

/** The position behind a message: to resume from when it is dealt with. */
export function positionAfter(
  position: TopicPosition,
  { partition, offset }: { readonly partition: number; readonly offset: string },
): TopicPosition {
  return { ...position, [partition]: (BigInt(offset) + 1n).toString() };
}

/**
 * What `from` and `to` are at this moment.
 *
 * @throws CellarstreamError `POSITION` when the topic is not there, or a position names a partition
 * or an offset that it does not have.
 */
export async function resolveRange(
  kafka: Kafka,
  topic: string,
  from: From,
  to: To,
): Promise<Range> {
  const bounds = await topicBounds({ kafka }, topic, RUN_FIRST);
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
      ? pick('high') // of an instant only the messages tell: markers have the broker's time
      : offsetsOf(to, pick('high'), bounds, topic);
  return { from: starts, ends, ...(to instanceof Date && { before: to.getTime() }) };
}

const RUN_FIRST = 'is TOPIC_PREFIX that of the service? `cellarstream run` makes the topics';

/** @throws CellarstreamError `POSITION` for one that is none. */
function isInstant(place: Date | TopicPosition): place is Date {
  if (!(place instanceof Date)) return false;
  if (!Number.isNaN(place.getTime())) return true;
  throw new CellarstreamError('POSITION', 'the Date to begin or to end at is not valid');
}

/** Where at the earliest the first message of an instant is: no further than what is committed. */
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
    const known = /^\d+$/.test(name) ? bounds.get(Number(name)) : undefined;
    const refuse = (why: string): never => {
      const context = { topic, partition: Number(name) };
      throw new CellarstreamError('POSITION', `${name}:${text}: ${why}`, { context });
    };
    if (!known) return refuse(`${topic} has the partitions 0 to ${bounds.size - 1}`);
    const { low, high } = known;
    const partition = Number(name);
    if (!/^\d+$/.test(text)) return refuse('an offset is a whole number');
    const offset = BigInt(text);
    if (offset > high) refuse(`partition ${partition} of ${topic} ends at ${high} now`);
    if (offset < low) {
      refuse(`partition ${partition} of ${topic} begins at ${low}: what was before it is deleted`);
    }
    offsets.set(partition, offset);
  }
  return offsets;
}

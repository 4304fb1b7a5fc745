/**
 * What fetches that bring nothing say. kafkajs passes empty answers over in silence, and stays where it
 * is for ever: but a log can end with a gap, where compaction has left nothing, and hold batches of
 * which it has left the header alone.
 */
export interface QuietFetches {
  /** A broker has answered a fetch; whether that brought a message shows by a {@link reset}. */
  answered(broker: string, tookMs: number, bytes: number): void;
  /** Something was read, or what is asked for has changed. */
  reset(): void;
  /**
   * Of the partitions that are read from a broker. `header`: there is no message at the next offset,
   * but there may be one behind it. `end`: there is none up to the end.
   */
  verdict(broker: string): 'open' | 'header' | 'end';
}

/** Answers in a row: the first may belong to what was read before. */
const ENOUGH = 4;
/** The same where time alone tells: a slow machine must not be taken for an end. */
const ENOUGH_FOR_END = 8;

/** Of a fetch's answer, in the shortest form of it that kafkajs knows: around a topic, and a partition. */
const TOPIC_BYTES = 18;
const PARTITION_BYTES = 30;

/** How long an answer is at least that speaks of a partition of this topic. */
export function leastAnswer(topic: string): number {
  return TOPIC_BYTES + Buffer.byteLength(topic) + PARTITION_BYTES;
}

/**
 * @param mostWaitMs How long a broker waits when it has nothing to send. One that answers sooner has
 * sent something.
 * @param leastBytes Shorter answers speak of no partition: a broker that holds us to a quota answers at
 * once, with nothing.
 */
export function quietFetches(mostWaitMs: number, leastBytes: number): QuietFetches {
  const quick = new Map<string, number>();
  const slow = new Map<string, number>();
  const add = (counts: Map<string, number>, broker: string) =>
    counts.set(broker, (counts.get(broker) ?? 0) + 1);

  return {
    answered: (broker, tookMs, bytes) => {
      if (bytes >= leastBytes) add(tookMs < mostWaitMs ? quick : slow, broker);
    },
    reset: () => {
      quick.clear();
      slow.clear();
    },
    verdict: (broker) => {
      const [quicks, slows] = [quick.get(broker) ?? 0, slow.get(broker) ?? 0];
      if (quicks > 1) return quicks + slows >= ENOUGH ? 'header' : 'open';
      return slows >= ENOUGH_FOR_END ? 'end' : 'open';
    },
  };
}

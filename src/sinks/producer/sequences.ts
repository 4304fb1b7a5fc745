/** How many records of one identity went to each partition: brokers know by it what they have, and what is missing. */
export interface Sequences {
  /** The sequence of the first of `count` records, which are counted with it. */
  next(topic: string, partition: number, count: number): number;
}

/** They begin again at 0 behind the greatest number of 31 bits. */
const ALL = 2 ** 31;

export function sequences(): Sequences {
  const counts = new Map<string, number>();
  return {
    next: (topic, partition, count) => {
      const name = `${topic} ${partition}`;
      const first = counts.get(name) ?? 0;
      counts.set(name, (first + count) % ALL);
      return first;
    },
  };
}

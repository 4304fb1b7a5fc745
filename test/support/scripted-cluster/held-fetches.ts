import type { ScriptedCluster } from '../scripted-cluster.ts';
import { batchBytes } from '../record-bytes.ts';
import type { Deed, Received } from './fault.ts';
import type { FetchedPartition } from './protocol.ts';

/** A fetch that a broker has been sent and has not answered. */
export interface HeldFetch {
  readonly broker: number;
  readonly connection: number;
  /** The requested partitions and offsets, in the order of the request: `partition:offset`. */
  readonly asked: readonly string[];
  /** How long the broker is to wait for something new, ms. */
  readonly waitMs: number;
  answer(...partitions: readonly ScriptedPartition[]): void;
  /** The answer makes no sense. */
  garble(): void;
  /** The connection breaks. */
  hangUp(): void;
}

type ScriptedPartition = Partial<FetchedPartition> & {
  readonly partition: number;
  /** Offsets of the records, each in a batch of its own. */
  readonly offsets?: readonly number[];
};

/** Holds every fetch until the test answers it; each must be of one topic. The function that is returned resolves with the next one. */
export function holdFetches(cluster: ScriptedCluster): () => Promise<HeldFetch> {
  const held: HeldFetch[] = [];
  const waiting: ((fetch: HeldFetch) => void)[] = [];
  const deed = (received: Received) =>
    new Promise<Deed>((decide) => {
      const { waitMs, topics } = (received as Received<'Fetch'>).body;
      const [{ topic, partitions }] = topics as [(typeof topics)[number]];
      const fetch: HeldFetch = {
        broker: received.broker,
        connection: received.connection,
        asked: partitions.map(({ partition, offset }) => `${partition}:${offset}`),
        waitMs,
        answer: (...answers) =>
          decide({
            answer: { errorCode: 0, topics: [{ topic, partitions: answers.map(completed) }] },
          }),
        garble: () => decide({ bytes: Buffer.alloc(5) }),
        hangUp: () => decide('hang up before'),
      };
      const first = waiting.shift();
      if (first) first(fetch);
      else held.push(fetch);
    });
  cluster.fault({ api: 'Fetch', times: Infinity, deed });
  return () => {
    const first = held.shift();
    return first ? Promise.resolve(first) : new Promise((resolve) => waiting.push(resolve));
  };
}

function completed({ offsets = [], ...answer }: ScriptedPartition): FetchedPartition {
  const records = Buffer.concat(offsets.map((offset) => batchBytes({ records: [{ offset }] })));
  const { stableEnd = 0 } = answer;
  return { errorCode: 0, end: stableEnd, stableEnd, aborted: [], records, ...answer };
}

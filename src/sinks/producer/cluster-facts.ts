import { askedTogether } from '../../core/asked-together.ts';
import type { Bounds, Isolation } from '../sink.ts';
import { askBrokers } from './ask-brokers.ts';
import type { Asked } from './ask-brokers.ts';
import { knownBounds } from './bounds.ts';
import { metadata } from './calls.ts';

/** What any broker knows: it is asked once for all who ask at the same time, such as lists that are opened together. */
export interface ClusterFacts {
  /** Names the cluster. */
  readonly id: () => Promise<string>;
  /** Where the partitions of a topic begin and end, as a broker knows it. */
  readonly bounds: (topic: string, isolation: Isolation) => Promise<ReadonlyMap<number, Bounds>>;
}

/** How long brokers are asked, ms. */
const ASKED_MS = 5_000;

/** All of it throws what {@link askBrokers} does. */
export function clusterFacts(asked: Asked): ClusterFacts {
  const bounds = new Map<string, () => Promise<ReadonlyMap<number, Bounds>>>();
  return {
    id: askedTogether(async () => {
      const found = await askBrokers(asked, ASKED_MS, (brokers) => brokers.askAny(metadata([])));
      return found.clusterId;
    }),
    bounds: (topic, isolation) => {
      const name = `${topic} ${isolation}`;
      const known =
        bounds.get(name) ??
        askedTogether(() =>
          askBrokers(asked, ASKED_MS, (brokers) => knownBounds({ topic, isolation, brokers })),
        );
      bounds.set(name, known);
      return known();
    },
  };
}

import { concatMap, defer, mergeMap, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import type { Offsets } from '../../src/kafka/log.ts';
import type { SignalBatch, SignalTopic } from '../../src/sinks/signals/kafka-signals.ts';
import { signalMessage } from '../../src/sinks/signals/signals.ts';
import type { CertifyRequest, ResyncRequest } from '../../src/sinks/signals/signals.ts';
import type { SimBroker } from './sim-broker.ts';

export const SIGNALS = 'sim.signals';
/** How often those who follow it look for what is new, ms: seldom, so that they are often behind. */
const LOOK_EVERY_MS = 3_000;

/** Leaves a request, as somebody beside the service does. */
export function ask(broker: SimBroker, request: ResyncRequest | CertifyRequest, at: number): void {
  const id = `asks ${request.id}`;
  const epoch = broker.open(id);
  broker.begin(id, epoch);
  broker.append(id, epoch, [signalMessage(SIGNALS, request)], at);
  broker.commit(id, epoch);
}

export interface SignalsLine {
  /** Waits as long as a step takes, which may be the last of the process. */
  readonly step: (what: string) => Promise<void>;
  /** Waits while the process stands still; never resolves for one that is gone. */
  readonly awake: () => Promise<void>;
  readonly scheduler: SchedulerLike;
}

/** The topic as one process sees it. Following it is no danger: that it is looked at so often is. */
export function signalsOf(broker: SimBroker, { step, awake, scheduler }: SignalsLine): SignalTopic {
  const look = (from: Offsets): SignalBatch[] =>
    [...broker.ends(SIGNALS)].map(([partition, next]) => {
      const at = from.get(partition) ?? 0n;
      const messages = broker.slice(SIGNALS, partition, Number(at), Number(next));
      return { partition, messages, next };
    });
  const follow = (begin: Offsets): Observable<SignalBatch> => {
    let at = begin;
    return timer(LOOK_EVERY_MS, LOOK_EVERY_MS, scheduler).pipe(
      concatMap(awake),
      concatMap(() => {
        const batches = look(at);
        at = new Map(batches.map(({ partition, next }) => [partition, next]));
        return batches;
      }),
    );
  };
  return {
    name: SIGNALS,
    ends: () => Promise.resolve(broker.ends(SIGNALS)),
    read: ({ from, follow: isFollowing }) =>
      isFollowing ? follow(from) : defer(() => step('signals')).pipe(mergeMap(() => look(from))),
    send: () => Promise.reject(new Error('there is nothing to refuse')),
    close: () => Promise.resolve(),
  };
}

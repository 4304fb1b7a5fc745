// Fetches a topic from all of its partition leaders at once, and reconnects when leaders move or Kafka was unreachable.

import kafkajs from 'kafkajs';
import type { Kafka } from 'kafkajs';
import {
  defer,
  firstValueFrom,
  lastValueFrom,
  map,
  merge,
  Observable,
  retry,
  takeUntil,
  throwError,
  timer,
} from 'rxjs';
import type { Subscriber } from 'rxjs';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { FETCH_RETRIES, PAUSES, pauseMs } from '../../core/retries.ts';
import type { Offsets } from '../log.ts';
import type { PartitionResponse, FetcherOptions } from './kafka-fetcher.ts';
import { kafkaError } from '../client/kafka-error.ts';
import { ERROR, errorAction, noLeaderError, partitionError } from '../client/protocol-errors.ts';
import { Fetcher, isOutOfRange } from './kafka-fetcher.ts';

interface FetchLoopsOptions<T> extends FetcherOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  /**
   * Whether to reconnect without limit in an outage of Kafka that begins after the first connection. If false, such an outage rejects
   * `done`.
   */
  readonly retriesOutages: boolean;
  /** The first value ends the fetches. The observable must replay that value to late subscribers. */
  readonly leave$: Observable<unknown>;
  /**
   * Returns the partitions to fetch next, with the offset at which to continue in each. The partition that has waited longest comes first.
   * `partitions`: the partitions that the topic has.
   */
  readonly nextOffsets: (partitions: Iterable<number>) => Offsets;
  /** Decodes a broker's response to a fetch. `asked`: the requested offsets. The result is passed to `take`. */
  readonly prepare: (answers: readonly PartitionResponse[], asked: Offsets) => Promise<T>;
  /** Receives the result of `prepare`. Not called for responses of a connection that is no longer used. */
  readonly take: (prepared: T) => void;
}

/** Kafka's error code for an unknown topic. Brokers also return it for a topic that was created a moment ago. */
const NO_TOPIC = ERROR.UNKNOWN_TOPIC_OR_PARTITION;
const NO_LEADER_ID = -1;

/** Repeated fetches over one connection. They end when `subscriber` is closed. A failed fetch closes `subscriber` with its error. */
interface ConnectionFetches {
  readonly fetcher: Fetcher;
  readonly subscriber: Subscriber<never>;
  /** Ids of the brokers to which a fetch is in flight. */
  readonly busy: Set<number>;
}

/**
 * Fetches repeatedly from every broker that leads a partition, with one fetch per broker in flight. An error ends all fetches. If a retry
 * may resolve the error, the fetches restart with a new connection after a pause.
 */
export class FetchLoops<T> {
  readonly #options: FetchLoopsOptions<T>;
  #hasConnected = false;
  /** Number of failures since the last successful fetch. */
  #failures = 0;
  /**
   * Number of consecutive failures with Kafka's error code for an unknown topic or partition. A successful fetch, or a failure with another
   * cause, sets it to 0.
   */
  #missing = 0;
  #current: ConnectionFetches | undefined;
  /**
   * Resolves after `leave$` has emitted and the connection is closed. Rejects with an error of `prepare` or `take` that is not retried, or
   * with a CellarstreamError:
   *
   * - `KAFKA_UNREACHABLE` if Kafka can't be reached at first, or in an outage without `retriesOutages`;
   * - `KAFKA_REFUSED` or `TLS_REFUSED` if no retry can succeed;
   * - `POSITION` if the topic was deleted.
   */
  readonly done: Promise<void>;

  constructor(options: FetchLoopsOptions<T>) {
    this.#options = options;
    const attempts$ = defer(() => this.#connectAndFetch()).pipe(
      retry({ delay: (error: unknown) => this.#retryAfter(error) }),
    );
    this.done = lastValueFrom(attempts$, { defaultValue: undefined });
  }

  /**
   * Starts a fetch from each broker that leads a partition in `nextOffsets` and has no fetch in flight. Must be called when `nextOffsets`
   * would return a partition that it did not return before.
   */
  wake(): void {
    if (this.#current) this.#startIdle(this.#current);
  }

  async #connectAndFetch(): Promise<void> {
    const { kafka, topic, leave$ } = this.#options;
    const opening = Fetcher.open(kafka, topic, this.#options);
    const fetcher = await firstValueFrom(merge(opening, leave$.pipe(map(() => undefined))));
    if (!fetcher) {
      // `leave$` came first. Connecting may still take minutes, so it is not awaited; the connection is closed once it is there.
      opening.then((late) => late.close()).catch(() => undefined);
      return;
    }
    this.#hasConnected = true;
    try {
      const fetches$ = new Observable<never>((subscriber) => {
        this.#current = { fetcher, subscriber, busy: new Set() };
        this.wake();
      });
      await lastValueFrom(fetches$.pipe(takeUntil(leave$)), { defaultValue: undefined });
    } finally {
      await fetcher.close().catch(() => undefined); // the earlier error says more
    }
  }

  /** Starts fetches from the brokers that lead a partition to fetch and have no fetch in flight. */
  #startIdle(connection: ConnectionFetches): void {
    const { fetcher, subscriber, busy } = connection;
    const { topic, nextOffsets } = this.#options;
    const fail = (error: unknown) => subscriber.error(error);
    const start = async () => {
      const leaders = await fetcher.leaders();
      for (const partition of nextOffsets(leaders.keys()).keys()) {
        const leader = leaders.get(partition);
        if (leader === undefined) throw partitionError(NO_TOPIC, topic, partition);
        if (leader === NO_LEADER_ID) throw noLeaderError(topic, partition);
        if (busy.has(leader)) continue;
        busy.add(leader);
        this.#fetchFrom(leader, connection).catch(fail);
      }
    };
    if (!subscriber.closed) start().catch(fail);
  }

  /** Fetches repeatedly from one broker, as long as the broker leads a partition that `nextOffsets` returns. */
  async #fetchFrom(leader: number, connection: ConnectionFetches): Promise<void> {
    const { fetcher, subscriber, busy } = connection;
    for (;;) {
      const leaders = await fetcher.leaders();
      const wanted = [...this.#options.nextOffsets(leaders.keys())];
      const offsets = new Map(wanted.filter(([each]) => leaders.get(each) === leader));
      if (offsets.size === 0 || subscriber.closed) break;
      if (!(await this.#fetchOnce(leader, offsets, connection))) break;
      this.#startIdle(connection); // another broker may lead some partitions by now
    }
    busy.delete(leader);
    this.#startIdle(connection); // a partition may have been resumed meanwhile
  }

  /**
   * Sends one fetch request for the partitions in `offsets` to the broker `leader`, and passes the response through `prepare` to `take`.
   * Returns false, without calling `take`, if the subscriber was closed meanwhile.
   *
   * @throws the error of the first partition that the broker refused.
   */
  async #fetchOnce(
    leader: number,
    offsets: Offsets,
    { fetcher, subscriber }: ConnectionFetches,
  ): Promise<boolean> {
    const { topic, prepare, take } = this.#options;
    const answers = await fetcher.fetch(leader, offsets);
    const refused = answers.filter((each) => each.errorCode !== 0 && !isOutOfRange(each));
    const others = answers.filter((each) => !refused.includes(each));
    const prepared = await prepare(others, offsets);
    if (subscriber.closed) return false;
    take(prepared);
    const [first] = refused;
    if (first) throw partitionError(first.errorCode, topic, first.partition); // after the other partitions' messages have been taken
    this.#failures = 0;
    this.#missing = 0;
    return true;
  }

  #retryAfter(error: unknown): Observable<unknown> {
    const { topic, leave$ } = this.#options;
    if (this.#canPass(error)) {
      this.#failures += 1;
      return timer(pauseMs(PAUSES.kafkaFetch, this.#failures)).pipe(takeUntil(leave$));
    }
    const isMissing = codeOf(error) === NO_TOPIC;
    return throwError(() => (isMissing ? topicDeletedError(topic, error) : kafkaError(error)));
  }

  #canPass(error: unknown): boolean {
    const { retriesOutages } = this.#options;
    const code = codeOf(error);
    this.#missing = code === NO_TOPIC ? this.#missing + 1 : 0;
    if (code === NO_TOPIC) return this.#missing <= FETCH_RETRIES;
    // The broker does not lead the partition: either our metadata or the broker's own are outdated.
    if (code !== undefined && errorAction(code) === 'leader')
      return retriesOutages || this.#failures < FETCH_RETRIES;
    return retriesOutages && this.#hasConnected && isRetryable(kafkaError(error));
  }
}

/**
 * Returns Kafka's error code in the error or its causes; undefined if there is none. kafkajs' error for an unknown broker counts as
 * `NOT_LEADER_OR_FOLLOWER`.
 */
function codeOf(error: unknown): number | undefined {
  if (error instanceof kafkajs.KafkaJSProtocolError) return error.code;
  if (error instanceof kafkajs.KafkaJSBrokerNotFound) return ERROR.NOT_LEADER_OR_FOLLOWER;
  return error instanceof Error && error.cause ? codeOf(error.cause) : undefined;
}

function topicDeletedError(topic: string, cause: unknown): CellarstreamError {
  return new CellarstreamError(
    'POSITION',
    `topic ${topic} does not exist, or has fewer partitions than before: check whether it was deleted or recreated. A recreated topic has to be read from its beginning, because offsets of the old topic do not apply to it`,
    { cause, context: { topic } },
  );
}

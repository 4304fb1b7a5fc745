import type { Kafka } from 'kafkajs';
import {
  defer,
  EMPTY,
  filter,
  firstValueFrom,
  ignoreElements,
  interval,
  lastValueFrom,
  merge,
  repeat,
  retry,
  startWith,
  Subject,
  switchMap,
  takeUntil,
  tap,
  timer,
} from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import { topicBounds } from '../kafka/client/topic-facts.ts';
import { readBatches } from '../kafka/fetch/read-batches.ts';
import type { Bounds } from '../kafka/log.ts';
import { PlainProducer } from '../sinks/producer/plain-producer.ts';
import type { Message } from '../sinks/sink.ts';
import { applyRecord, parseFleetRecord } from './fleet-record.ts';
import type { AccountTopicState } from './fleet-record.ts';
import { applyReport } from './report.ts';
import type { Report } from './report.ts';

/** State of a fleet according to the messages of its topic. */
export interface FleetTopicState {
  /** State of each account, by its name. */
  readonly accounts: ReadonlyMap<string, AccountTopicState>;
  /** Newest report of each instance, by instance id. The report of a departed instance is included until it is deleted. */
  readonly reports: ReadonlyMap<string, Report>;
}

/** Builds the {@link FleetTopicState} from the messages of the fleet's topic. */
export class FleetTopicTable implements FleetTopicState {
  readonly accounts = new Map<string, AccountTopicState>();
  readonly reports = new Map<string, Report>();

  /** Applies messages of the fleet's topic in their order. Messages that this version can't decode are ignored. */
  apply(messages: readonly { readonly key: Buffer | null; readonly value: Buffer | null }[]): void {
    for (const message of messages) {
      applyReport(this.reports, message);
      const record = parseFleetRecord(message.value);
      if (record)
        this.accounts.set(record.account, applyRecord(this.accounts.get(record.account), record));
    }
  }

  /** Forgets all accounts and reports. Called when the topic was deleted and made again under the same name. */
  clear(): void {
    this.accounts.clear();
    this.reports.clear();
  }
}

/** Client of the fleet's topic: reads the state of the fleet from it, and writes messages to it. */
export interface FleetLog extends FleetTopicState {
  /**
   * Reads the fleet's topic while subscribed, and emits after each batch that contains messages. Errors are reported to `onRetry`, and
   * reading resumes. Never completes.
   */
  readonly following$: Observable<void>;
  /**
   * Resolves once the topic has been read up to the end that it had at the call. Rejects if the end can't be requested. Works only while
   * {@link following$} is subscribed.
   */
  readonly catchUp: () => Promise<void>;
  readonly send: (message: Message) => Promise<void>;
  readonly close: () => void;
}

interface FleetLogOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly scheduler: SchedulerLike;
  readonly onRetry: (retry: { error: unknown; count: number; delayMs: number }) => void;
}

/** Pause before reading the fleet's topic is retried after an error, in ms. */
const PAUSE_MS = 1_000;
/**
 * Longest time to read up to the end of the topic, in ms. After that, the topic is read over a new connection: kafkajs itself takes half a
 * minute to detect a dead one.
 */
const READ_TIMEOUT_MS = 3_000;

/**
 * Opens the fleet's topic. Messages of open and aborted transactions are read too, because a transaction left open by a crashed instance
 * would hold up a reader of committed messages for a minute.
 */
export function fleetLog(options: FleetLogOptions): FleetLog {
  const { kafka, topic, scheduler, onRetry } = options;
  const state = new FleetTopicTable();
  const moved$ = new Subject<void>();
  const stalled$ = new Subject<void>();
  const producer = new PlainProducer(kafka);
  let next = 0n;

  const bounds = () => fleetLogBounds(kafka, topic);
  const reading$ = defer(async () => {
    const { low, high } = await bounds();
    if (next > high) state.clear(); // the topic was recreated
    return { from: next > high || next < low ? low : next, high };
  }).pipe(
    switchMap(({ from, high }) => {
      next = from;
      moved$.next();
      const range = { from: new Map([[0, from]]), ends: new Map([[0, high]]) };
      return readBatches(
        // The last message about an account still comes from its newest owner, which fences the previous owner before it writes its claim.
        { kafka, topic, range, follow: true, isolation: 'uncommitted', retriesOutages: false },
        (batch) => {
          state.apply(batch.messages);
          ({ next } = batch);
          moved$.next();
          return batch.messages.length > 0 ? [undefined] : EMPTY;
        },
      );
    }),
  );

  return {
    accounts: state.accounts,
    reports: state.reports,
    following$: reading$.pipe(
      takeUntil(stalled$),
      repeat(),
      retry({
        resetOnSuccess: true,
        delay: (error: unknown, count) => {
          onRetry({ error, count, delayMs: PAUSE_MS });
          return timer(PAUSE_MS, scheduler);
        },
      }),
    ),
    catchUp: async () => {
      const { high } = await bounds();
      const read$ = moved$.pipe(
        startWith(undefined),
        filter(() => next >= high),
      );
      const late$ = interval(READ_TIMEOUT_MS, scheduler).pipe(
        tap((count) => {
          const message = `${topic} was not read to its end in ${READ_TIMEOUT_MS / 1_000} s: it is read over another connection`;
          const error = new CellarstreamError('KAFKA_UNREACHABLE', message, { context: { topic } });
          onRetry({ error, count: count + 1, delayMs: 0 });
          stalled$.next();
        }),
        ignoreElements(),
      );
      await firstValueFrom(merge(read$, late$));
    },
    send: (message) => producer.send(topic, message),
    close: () => producer.close(),
  };
}

const MISSING_TOPIC_ADVICE =
  '`cellarstream run` with ACCOUNTS_DIR creates it at its start: check that TOPIC_PREFIX is the prefix of the fleet';

/**
 * Returns the first offset and the high watermark of the fleet's topic, which has one partition.
 *
 * @throws CellarstreamError `POSITION` if there is no such topic.
 */
async function fleetLogBounds(kafka: Kafka, topic: string): Promise<Bounds> {
  return (await topicBounds({ kafka }, topic, MISSING_TOPIC_ADVICE, 'uncommitted')).get(0)!;
}

/**
 * Reads the fleet's topic once from its beginning to its end. Messages of open and aborted transactions are applied too.
 *
 * @throws CellarstreamError `POSITION` if there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
export async function readFleetTopic(kafka: Kafka, topic: string): Promise<FleetTopicState> {
  const { low, high } = await fleetLogBounds(kafka, topic);
  const state = new FleetTopicTable();
  const range = { from: new Map([[0, low]]), ends: new Map([[0, high]]) };
  const read$ = readBatches(
    { kafka, topic, range, isolation: 'uncommitted', retriesOutages: false },
    ({ messages }) => {
      state.apply(messages);
      return EMPTY;
    },
  );
  await lastValueFrom(read$, { defaultValue: undefined });
  return state;
}

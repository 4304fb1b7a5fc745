// Maintains a topic as an in-memory table: the newest published version of each record.

import { defer, firstValueFrom, Subject, switchMap, tap } from 'rxjs';
import type { Observable, Subscription } from 'rxjs';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import type { JsonObject } from '../schemas/json/json.ts';
import type { CheckedCertificate } from './check-certificate.ts';
import type { Consumed } from './consumed.ts';
import { replay } from './replay.ts';
import type { ReplayOptions, Source } from './replay.ts';
import { certifiedTopic, TableCheck } from './check-certificate.ts';
import { jsonEvents } from './topic.ts';
import type { Topic, ValueReader } from './topic.ts';

/** Change of one record of an in-memory table, caused by a message. */
export interface TableChange<Image> {
  readonly key: string;
  /** The record before the change; undefined if the table did not contain it. */
  readonly before: Image | undefined;
  /** The record after the change; undefined if it was deleted, or if the function `select` of {@link table} returned undefined. */
  readonly after: Image | undefined;
}

/** Options of {@link table}: the source of its records, and callbacks. */
export interface TableOptions<Image>
  extends
    Omit<Source<ChangeEvent<Image>>, 'topic'>,
    Pick<ReplayOptions<ChangeEvent<Image>>, 'onRetry' | 'certificates'> {
  /** The topic to read. If only its name is given, the images are decoded as the API's JSON, which works for every list of every API. */
  readonly topic: Topic<ChangeEvent<Image>> | string;
  /**
   * Called with the result of comparing the table with a certificate, which states count and digest of the list's records after a full
   * scan. The newest certificate and each later one are compared once the table has applied the events before them.
   *
   * With this callback the table needs more memory, for a hash of each key. If the callback throws, the table ends with that error.
   */
  readonly onCertificate?: (checked: CheckedCertificate) => void;
}

/**
 * The newest image of each record of a resource, updated as events are published. After a failure, `get`, `size` and `entries` throw the
 * error of `changes$`.
 */
export interface Table<Image> {
  /** Returns the record with this key; undefined if it does not exist, has not been read yet, or `select` returned undefined for it. */
  get(key: string): Image | undefined;
  /** Number of records in the table. */
  readonly size: number;
  /** Number of outdated and duplicate messages that were ignored so far. It is above 0 only if something is wrong with the topic. */
  readonly dropped: number;
  /** Iterates over keys and records, in no particular order. */
  entries(): IterableIterator<[string, Image]>;
  /**
   * Resolves once the table has applied every message that existed when it began to read the topic. Rejects if the table fails or is closed
   * before that.
   */
  readonly ready: Promise<void>;
  /**
   * Emits each change from the subscription on, also while the table is loaded. Errors as {@link replay} does, or if `select` or
   * `onCertificate` throws. Completes when the table is closed.
   */
  readonly changes$: Observable<TableChange<Image>>;
  /** Stops applying new events of the topic to the table. The records in the table stay readable. */
  close(): void;
}

/**
 * Creates an in-memory table of a resource's newest images: reads the topic from its beginning, and then applies events as they are
 * published. To save memory, reduce the images with `select`. If Kafka is unavailable at the start, the table ends with the error; if Kafka
 * or the registry becomes unavailable later, the table waits for it.
 *
 * @example
 * ```ts
 * import { table, topicsUnder } from 'cellarstream/consume';
 * import { createRegistry } from 'cellarstream/schemas';
 * import { Kafka } from 'kafkajs';
 *
 * const kafka = new Kafka({ brokers: ['127.0.0.1:9092'] });
 * const registry = createRegistry({ url: 'http://127.0.0.1:8081/apis/ccompat/v7' });
 * const orders = table({ kafka, registry, topic: topicsUnder().orders });
 * await orders.ready;
 * console.log(orders.size, orders.get('100234'));
 * orders.changes$.subscribe(({ key, after }) => console.log(key, after));
 * ```
 */
export function table<Image = JsonObject>(source: TableOptions<Image>): Table<Image>;
/**
 * Like `table` without `select`, but stores only what `select` returns for each image.
 *
 * @param select Returns the part of an image to store, or undefined to store nothing. If it throws, the table ends with that error.
 */
export function table<Image = JsonObject, Held = Image>(
  source: TableOptions<Image>,
  select: (image: Image, key: string) => Held,
): Table<Held>;
export function table<Image>(
  source: TableOptions<Image>,
  select: (image: Image, key: string) => unknown = (image) => image,
): Table<unknown> {
  return new TopicTable(source, select);
}

function jsonTopic<Image>(name: string): Topic<ChangeEvent<Image>> {
  return { name, values: jsonEvents as ValueReader<unknown> as ValueReader<ChangeEvent<Image>> };
}

/**
 * Implementation of {@link Table}. It applies events until reading or applying them fails (`#failure` is then the error of `changes$`) or
 * the table is closed.
 */
class TopicTable<Image, Held> implements Table<Held> {
  readonly #ready$ = new Subject<void>();
  readonly ready = firstValueFrom(this.#ready$);
  readonly #select: (image: Image, key: string) => Held;
  readonly #images = new Map<string, Held>();
  readonly #isNewer = inSequence<Image>();
  readonly #changes$ = new Subject<TableChange<Held>>();
  readonly changes$ = this.#changes$.asObservable();
  readonly #updates: Subscription;
  /** Compares the events with certificates; undefined if there is no `onCertificate` callback. Assigned before the first event. */
  #check: TableCheck | undefined;
  #dropped = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    { onCertificate, ...source }: TableOptions<Image>,
    select: (image: Image, key: string) => Held,
  ) {
    this.#select = select;
    this.ready.catch(() => undefined); // `changes$` reports the error as well, so a caller may ignore `ready`
    const topic = typeof source.topic === 'string' ? jsonTopic<Image>(source.topic) : source.topic;
    const events$ = replay({
      ...{ ...source, topic },
      to: 'never',
      onCaughtUp: () => this.#ready$.next(),
      ...(onCertificate && {
        onCertificate: (published) => onCertificate(this.#check!.judge(published, Date.now())),
      }),
    });
    const checked$ = defer(() => certifiedTopic(source.kafka, topic.name)).pipe(
      tap((facts) => (this.#check = new TableCheck(facts))),
      switchMap(() => events$),
    );
    this.#updates = (onCertificate ? checked$ : events$)
      .pipe(tap((event) => this.#apply(event)))
      .subscribe({ error: (error: unknown) => this.#fail(error) });
  }

  // Fields, so that callers can pass these functions on without their object.
  readonly get = (key: string): Held | undefined => this.#current().get(key);
  readonly entries = (): IterableIterator<[string, Held]> => this.#current().entries();
  readonly close = (): void => {
    this.#updates.unsubscribe();
    this.#changes$.complete();
    this.#ready$.error(
      new Error(
        'close() of the table was called before all of its topic had been read, so the table never became ready',
      ),
    );
  };

  get size(): number {
    return this.#current().size;
  }

  get dropped(): number {
    return this.#dropped;
  }

  #current(): Map<string, Held> {
    if (this.#failure) throw this.#failure.error;
    return this.#images;
  }

  #apply(event: Consumed<ChangeEvent<Image>>): void {
    const { key, value } = event;
    if (!this.#isNewer(event)) return void (this.#dropped += 1);
    if (key === null) return;
    this.#check?.apply(event.partition, Number(event.offset), key, value);
    const before = this.#images.get(key);
    const image = value?.after ?? null; // a tombstone has no value, a deletion no image
    const after = image === null ? undefined : this.#select(image, key);
    if (after === undefined) this.#images.delete(key);
    else this.#images.set(key, after);
    if (before !== undefined || after !== undefined) this.#changes$.next({ key, before, after });
  }

  #fail(error: unknown): void {
    this.#failure = { error };
    this.#ready$.error(error);
    this.#changes$.error(error);
  }
}

interface Progress {
  /** Highest `sequence` read in the partition so far. */
  readonly sequence: number;
  /**
   * Key of the partition's last event (tombstones aside) if that event was outdated or a duplicate; otherwise null. A tombstone of this
   * key that follows is outdated, too.
   */
  readonly late: string | null;
}

const NOTHING: Progress = { sequence: -Infinity, late: null };

/**
 * Returns a function that takes the events in order and returns whether an event has a higher sequence than all earlier ones of its
 * partition. For a tombstone, which has no sequence, it returns the result for the deletion before it.
 */
function inSequence<Image>(): (event: Consumed<ChangeEvent<Image>>) => boolean {
  const partitions = new Map<number, Progress>();
  return ({ partition, key, value }) => {
    const { sequence: highest, late } = partitions.get(partition) ?? NOTHING;
    // If compaction has removed the deletion before it, a tombstone counts as newest.
    if (value === null) return late === null || late !== key;
    const { sequence } = value.source;
    // Otherwise the event is a duplicate, or was written by a fenced writer.
    const isNewer = sequence > highest;
    partitions.set(partition, {
      sequence: Math.max(highest, sequence),
      late: isNewer ? null : key,
    });
    return isNewer;
  };
}

// A topic as a table in memory: the newest image of each record, kept up to date.

import { defer, Subject, switchMap, tap } from 'rxjs';
import type { Observable } from 'rxjs';
import type { ChangeEvent } from '../schemas/events/envelope.ts';
import type { CheckedCertificate } from './check-certificate.ts';
import type { Consumed } from './consumed.ts';
import { replay } from './replay.ts';
import type { ReplayOptions, Source } from './replay.ts';
import { TableCheck } from './check-certificate.ts';

/** A record of a table, before and after a message. */
export interface TableChange<Image> {
  readonly key: string;
  /** Undefined when the table did not have it. */
  readonly before: Image | undefined;
  /** Undefined when it is gone. */
  readonly after: Image | undefined;
}

/** Where the records of a table are read from. */
export interface TableOptions<Image>
  extends
    Source<ChangeEvent<Image>>,
    Pick<ReplayOptions<ChangeEvent<Image>>, 'onRetry' | 'certificates'> {
  /**
   * Told of the list's newest certificate, and of each that comes, when the table has passed its positions: whether it has the
   * same keys, by the same events. It keeps count and digest for that, and a hash of each key. What it can't compare any
   * more is `not checked`. Throwing ends the table.
   */
  readonly onCertificate?: (checked: CheckedCertificate) => void;
}

/**
 * The newest image of each record of a resource, kept up to date.
 *
 * Once it can't be kept up to date any more, `get`, `size` and `entries` throw what `changes$` errors
 * with: nothing out of date is taken for the present.
 */
export interface Table<Image> {
  /** The record; undefined when there is none, or none yet. */
  get(key: string): Image | undefined;
  readonly size: number;
  /**
   * Events that were left out so far: their `sequence` was not above the highest of their partition, so that what they
   * say is old, or was said before. 0 unless something is wrong with the topic.
   */
  readonly dropped: number;
  /** All of it, by key; in no order to rely on. */
  entries(): IterableIterator<[string, Image]>;
  /**
   * Resolves when all is in it that was published when it began; rejects when that fails, or when it is
   * closed before.
   */
  readonly ready: Promise<void>;
  /**
   * What changes from the subscription on, the first filling included. Errors when the table can't be
   * kept up to date any more, as {@link replay} does or with what `select` throws; completes when it
   * is closed.
   */
  readonly changes$: Observable<TableChange<Image>>;
  /** Stops following. What it holds stays readable. */
  close(): void;
}

/**
 * Reads a resource's topic from its beginning, and follows it. Whole images are held in memory; where
 * a part of them is enough, `select` keeps that. A Kafka or a registry that goes away is waited for.
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
 * console.log(orders.size, orders.get('100234')?.payment_status);
 * orders.changes$.subscribe(({ key, after }) => console.log(key, after?.payment_status));
 * ```
 */
export function table<Image>(source: TableOptions<Image>): Table<Image>;
/**
 * The same, of a part of each image.
 *
 * @param select What is held of an image; undefined for nothing. What it throws ends the table.
 */
export function table<Image, Held>(
  source: TableOptions<Image>,
  select: (image: Image, key: string) => Held,
): Table<Held>;
export function table<Image>(
  source: TableOptions<Image>,
  select: (image: Image, key: string) => unknown = (image) => image,
): Table<unknown> {
  const held = new Map<string, unknown>();
  const isNewer = inSequence<Image>();
  let dropped = 0;
  const changes$ = new Subject<TableChange<unknown>>();
  let failure: { readonly error: unknown } | undefined;
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const ready = new Promise<void>((whenReady, whenFailed) => {
    resolve = whenReady;
    reject = whenFailed;
  });
  ready.catch(() => undefined); // `changes$` tells as well: it need not be waited for

  const { onCertificate, ...from } = source;
  let check: TableCheck | undefined;

  const apply = (event: Consumed<ChangeEvent<Image>>) => {
    const { key, value } = event;
    if (!isNewer(event)) return void (dropped += 1);
    if (key === null) return;
    check?.take(event.partition, Number(event.offset), key, value);
    const before = held.get(key);
    const image = value?.after ?? null; // a tombstone has no value, a deletion no image
    const after = image === null ? undefined : select(image, key);
    if (after === undefined) held.delete(key);
    else held.set(key, after);
    if (before !== undefined || after !== undefined) changes$.next({ key, before, after });
  };
  const followed$ = replay({
    ...from,
    to: 'never',
    onCaughtUp: resolve,
    ...(onCertificate && {
      onCertificate: (published) => onCertificate(check!.judge(published, Date.now())),
    }),
  });
  const checked$ = defer(() => TableCheck.of(source.kafka, source.topic.name)).pipe(
    tap((opened) => (check = opened)),
    switchMap(() => followed$),
  );
  const following = (onCertificate ? checked$ : followed$).pipe(tap(apply)).subscribe({
    error: (error: unknown) => {
      failure = { error };
      reject(error);
      changes$.error(error);
    },
  });
  const current = () => {
    if (failure) throw failure.error;
    return held;
  };
  return {
    get: (key) => current().get(key),
    get size() {
      return current().size;
    },
    get dropped() {
      return dropped;
    },
    entries: () => current().entries(),
    ready,
    changes$: changes$.asObservable(),
    close: () => {
      following.unsubscribe();
      changes$.complete();
      reject(new Error('the table was closed before it was ready'));
    },
  };
}

/** How far the events of a partition have come. */
interface Progress {
  /** The highest so far. */
  readonly sequence: number;
  /** The key of the event before, where that came late. */
  readonly late: string | null;
}

const NOTHING: Progress = { sequence: -Infinity, late: null };

/**
 * Tells of one event after the other whether it is newer than all before it in its partition. The sequence
 * rises with each of them; one that does not is there twice, or by the hand of a writer that was replaced.
 *
 * A tombstone has no sequence: it goes with the deletion right before it; alone, where compaction has taken that
 * away, it is the last word.
 */
function inSequence<Image>(): (event: Consumed<ChangeEvent<Image>>) => boolean {
  const partitions = new Map<number, Progress>();
  return ({ partition, key, value }) => {
    const { sequence: highest, late } = partitions.get(partition) ?? NOTHING;
    if (value === null) return late === null || late !== key;
    const { sequence } = value.source;
    const isNewer = sequence > highest;
    partitions.set(partition, {
      sequence: Math.max(highest, sequence),
      late: isNewer ? null : key,
    });
    return isNewer;
  };
}

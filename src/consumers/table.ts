import { Observable, ReplaySubject, Subject, firstValueFrom } from 'rxjs';
import type { Subscription } from 'rxjs';
import type { ChangeEvent } from '../schemas/envelope.ts';
import type { Consumed } from './consumed.ts';
import { replay } from './replay.ts';
import type { Source } from './replay.ts';

/** A record of a table, before and after a message. */
export interface TableChange<Image> {
  readonly key: string;
  /** Undefined when the table did not have it. */
  readonly before: Image | undefined;
  /** Undefined when it is gone. */
  readonly after: Image | undefined;
}

/** The newest image of each record of a resource, kept up to date. */
export interface Table<Image> {
  /** The record; undefined when there is none, or none yet. */
  get(key: string): Image | undefined;
  readonly size: number;
  /** All of it, by key; in no order to rely on. */
  entries(): IterableIterator<[string, Image]>;
  /** Resolves when all is in it that was published when it began; rejects when that fails. */
  readonly ready: Promise<void>;
  /**
   * What changes from the subscription on, the first filling included. Errors when the table can't be
   * kept up to date any more; completes when it is closed.
   */
  readonly changes$: Observable<TableChange<Image>>;
  /** Stops following. What it holds stays readable. */
  close(): void;
}

/**
 * Reads a resource's topic from its beginning, and follows it. Whole images are held in memory; where
 * a part of them is enough, `select` keeps that.
 */
export function table<Image>(source: Source<ChangeEvent<Image>>): Table<Image>;
/**
 * The same, of a part of each image.
 *
 * @param select What is held of an image; undefined for nothing.
 */
export function table<Image, Held>(
  source: Source<ChangeEvent<Image>>,
  select: (image: Image, key: string) => Held,
): Table<Held>;
export function table<Image>(
  source: Source<ChangeEvent<Image>>,
  select: (image: Image, key: string) => unknown = (image) => image,
): Table<unknown> {
  const held = new Map<string, unknown>();
  const changes$ = new Subject<TableChange<unknown>>();
  const caughtUp$ = new ReplaySubject<void>(1);

  const apply = ({ key, value }: Consumed<ChangeEvent<Image>>) => {
    if (key === null) return;
    const before = held.get(key);
    const image = value?.after ?? null; // a tombstone has no value, a deletion no image
    const after = image === null ? undefined : select(image, key);
    if (after === undefined) held.delete(key);
    else held.set(key, after);
    if (before !== undefined || after !== undefined) changes$.next({ key, before, after });
  };
  const following: Subscription = replay({
    ...source,
    to: 'never',
    onCaughtUp: () => caughtUp$.next(),
  }).subscribe({
    next: apply,
    error: (error: unknown) => {
      caughtUp$.error(error);
      changes$.error(error);
    },
  });
  const ready = firstValueFrom(caughtUp$);
  ready.catch(() => undefined); // `changes$` tells as well: it need not be waited for
  return {
    get: (key) => held.get(key),
    get size() {
      return held.size;
    },
    entries: () => held.entries(),
    ready,
    changes$: changes$.asObservable(),
    close: () => {
      following.unsubscribe();
      changes$.complete();
      caughtUp$.complete();
    },
  };
}

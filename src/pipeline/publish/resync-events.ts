import type { ListHooks } from '../../observe/list-hooks.ts';
import type { ResyncStep } from '../reads/read-batch.ts';
import type { TaskJobs } from '../../account/signal-jobs.ts';
import type { Message } from '../../sinks/sink.ts';
import type { Change } from '../../streams/diff/change.ts';
import type { ImageCodec } from '../../streams/records/page-record.ts';
import type { Stamps } from '../../streams/records/stamps.ts';
import { DecodedChange } from '../../streams/diff/diff.ts';
import type { Difference, Images, ReadRecords } from '../../streams/diff/diff.ts';

/**
 * Maximum number of keys that are remembered as republished by a resync request. If it is too small, records that overlapping pages contain
 * twice are republished twice.
 */
const MAX_REMEMBERED = 100_000;

export interface ResyncEventsOptions {
  readonly resyncs: Pick<TaskJobs, 'resyncAck' | 'ackCommitted'>;
  readonly codec: () => ImageCodec;
  /** The last published version (image) of each record, without the changes of the current batch. */
  readonly images: Images;
  readonly stamps: Stamps;
  readonly hooks: Pick<ListHooks, 'onResync'>;
}

/**
 * Creates the `r` events that a resync publishes in addition to changes, and the acknowledgement of the resync request. To be created each
 * time the task is opened, so that an unfinished resync starts over.
 */
export class ResyncEvents {
  readonly #options: ResyncEventsOptions;
  /** Id of the resync request in progress; undefined if there is none. */
  #id: string | undefined;
  /** Number of events for the resync request so far, including those of the batch that is about to be committed. */
  #events = 0;
  readonly #republishedKeys = new Set<string>();

  constructor(options: ResyncEventsOptions) {
    this.#options = options;
  }

  /**
   * Returns `r` events, with the newest images, for the records of a batch that the resync has to republish. Records that this batch
   * publishes as new get none.
   */
  republish(
    step: ResyncStep,
    { read, changes, refreshed }: Pick<Difference<ReadRecords>, 'read' | 'changes' | 'refreshed'>,
  ): Change[] {
    this.#begin(step);
    const { images, codec, stamps } = this.#options;
    const { since } = step.resync;
    const changed = new Map(changes.map((change) => [change.key, change]));
    const events: Change[] = [];
    for (const { key, updatedAt } of read.records) {
      if (since !== null && updatedAt !== null && updatedAt < since) continue;
      if (this.#republishedKeys.has(key)) continue;
      const change = changed.get(key);
      const image = change?.images.after ?? images.get(key);
      if (!image) continue; // an undecided record is refetched, and published then
      this.#remember(key);
      if (change?.images.before === null) continue;
      const written = codec(); // the images' own: a change is decoded later, and the current codec may be another one then
      const decode = (bytes: Buffer) => written.decode(bytes);
      const after = refreshed.get(key) ?? image;
      // `after` may differ from the published image in volatile fields.
      const facts = { key, op: 'r', images: { before: image, after } } as const;
      const shown = { ...facts, updatedAt: stamps.updatedAt(decode(after)) };
      events.push(new DecodedChange(shown, { decode, stamps }));
    }
    return events;
  }

  /**
   * Returns the message that acknowledges the resync request if `step` is the last step of the resync, else an empty array. `events` is the
   * number of events that are committed in the same transaction.
   */
  acknowledge(step: ResyncStep, events: number): Message[] {
    this.#begin(step);
    this.#events += events;
    const { resync, outcome } = step;
    return outcome ? [this.#options.resyncs.resyncAck(resync, outcome, this.#events)] : [];
  }

  /**
   * To be called once a batch of a resync is committed. After the last batch, marks the resync request as acknowledged and calls the hook
   * `onResync`.
   */
  stepCommitted({ resync, outcome }: ResyncStep): void {
    if (!outcome) return;
    this.#options.resyncs.ackCommitted(resync);
    this.#options.hooks.onResync({ id: resync.id, events: this.#events, ...outcome });
    this.#id = undefined;
    this.#republishedKeys.clear();
  }

  #begin({ resync }: ResyncStep): void {
    if (resync.id === this.#id) return;
    this.#id = resync.id;
    this.#events = 0;
    this.#republishedKeys.clear();
  }

  #remember(key: string): void {
    this.#republishedKeys.add(key);
    if (this.#republishedKeys.size <= MAX_REMEMBERED) return;
    const [oldest] = this.#republishedKeys; // a Set keeps the order of insertion
    this.#republishedKeys.delete(oldest!);
  }
}

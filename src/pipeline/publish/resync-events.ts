import type { ListHooks } from '../../observe/list-hooks.ts';
import type { ResyncStep } from '../reads/read-batch.ts';
import type { TaskJobs } from '../../account/signal-jobs.ts';
import type { Message } from '../../sinks/sink.ts';
import { instantOf } from '../../schemas/avro/instant.ts';
import type { Change } from '../../streams/diff/change.ts';
import type { ImageCodec } from '../../streams/records/page-record.ts';
import { DecodedChange } from '../../streams/diff/diff.ts';
import type { Difference, Images, ReadRecords } from '../../streams/diff/diff.ts';

/**
 * Maximum number of republished keys that are remembered, as overlapping pages repeat records. Too small: records are republished twice.
 */
const MAX_REMEMBERED = 100_000;

export interface ResyncEventsOptions {
  readonly resyncs: Pick<TaskJobs, 'resyncAck' | 'ackCommitted'>;
  /** Returns the codec of the current schema. */
  readonly codec: () => ImageCodec;
  /** The published images before the page is committed. */
  readonly images: Images;
  readonly hooks: Pick<ListHooks, 'onResync'>;
}

/** Events that a resync publishes in addition to changes, and its acknowledgement. */
export interface ResyncEvents {
  /**
   * Returns an `r` event for each record of a page, with its newest image after the page's own changes, and with volatile fields as read.
   * Each key is republished once per request. Records that the page publishes for the first time are omitted.
   */
  readonly republish: (
    step: ResyncStep,
    difference: Pick<Difference<ReadRecords>, 'read' | 'changes' | 'refreshed'>,
  ) => Change[];
  /**
   * Returns the acknowledgement of the resync request if the step is its last one; else an empty array. `events` is the number of events
   * committed with the step.
   */
  readonly acknowledge: (step: ResyncStep, events: number) => Message[];
  /** To be called once the events of the step are committed. */
  readonly stepCommitted: (step: ResyncStep) => void;
}

/** Creates the resync state of a task. To be created each time the task is opened, so that an unfinished request starts over. */
export function resyncEvents(options: ResyncEventsOptions): ResyncEvents {
  const { resyncs, codec, images, hooks } = options;
  let id: string | undefined;
  let total = 0;
  const republishedKeys = new Set<string>();

  const begin = ({ resync }: ResyncStep): void => {
    if (resync.id === id) return;
    id = resync.id;
    total = 0;
    republishedKeys.clear();
  };
  const remember = (key: string): void => {
    republishedKeys.add(key);
    if (republishedKeys.size <= MAX_REMEMBERED) return;
    const [oldest] = republishedKeys; // a Set keeps the order of insertion
    republishedKeys.delete(oldest!);
  };

  return {
    republish: (step, { read, changes, refreshed }) => {
      begin(step);
      const { since } = step.resync;
      const changed = new Map(changes.map((change) => [change.key, change]));
      const events: Change[] = [];
      for (const each of read.records) {
        const { key, updatedAt } = each;
        if (since !== null && updatedAt !== null && updatedAt < since) continue;
        if (republishedKeys.has(key)) continue;
        const change = changed.get(key);
        const image = change?.images.after ?? images.get(key);
        if (!image) continue; // an undecided record is refetched, and published then
        remember(key);
        const isFirst = change?.images.before === null;
        if (!isFirst)
          events.push(republishedChange(key, image, refreshed.get(key) ?? image, codec()));
      }
      return events;
    },
    acknowledge: (step, events) => {
      begin(step);
      total += events;
      const { resync, outcome } = step;
      return outcome ? [resyncs.resyncAck(resync, outcome, total)] : [];
    },
    stepCommitted: ({ resync, outcome }) => {
      if (!outcome) return;
      resyncs.ackCommitted(resync);
      hooks.onResync({ id: resync.id, events: total, ...outcome });
      id = undefined;
      republishedKeys.clear();
    },
  };
}

/** `r` event of a republished record. `after` may differ from the published image `before` in volatile fields. */
function republishedChange(key: string, before: Buffer, after: Buffer, codec: ImageCodec): Change {
  const decode = (bytes: Buffer) => codec.decode(bytes);
  const images = { before, after };
  const updatedAt = instantOf(decode(after), 'updated_at');
  return new DecodedChange({ key, op: 'r', images, updatedAt }, decode);
}

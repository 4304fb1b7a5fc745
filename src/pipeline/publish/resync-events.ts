import type { ListHooks } from '../../observe/list-hooks.ts';
import type { ResyncStep } from '../reads/read-batch.ts';
import type { TaskResyncs } from '../../account/resync-requests.ts';
import type { Message } from '../../sinks/sink.ts';
import { instantOf } from '../../schemas/avro/instant.ts';
import type { Change } from '../../streams/diff/change.ts';
import type { ImageCodec } from '../../streams/records/page-record.ts';
import { DecodedChange } from '../../streams/diff/diff.ts';
import type { Difference, Images, ReadRecords } from '../../streams/diff/diff.ts';

/** Keys that were published again and are remembered: overlapping pages bring them twice. */
const MAX_REMEMBERED = 100_000;

export interface ResyncEventsOptions {
  readonly resyncs: Pick<TaskResyncs, 'acknowledge' | 'acknowledged'>;
  /** What writes and reads images just now. */
  readonly codec: () => ImageCodec;
  /** The last published images, as of before the page. */
  readonly images: Images;
  readonly hooks: Pick<ListHooks, 'onResync'>;
}

/** What readings for requests publish beside what they find changed. */
export interface ResyncEvents {
  /**
   * A page's records once more, each as it is in the image that is the newest after the page's own
   * changes, with its volatile fields as they came; once a request. What the page itself publishes for the first time is left out.
   */
  readonly again: (
    step: ResyncStep,
    difference: Pick<Difference<ReadRecords>, 'read' | 'changes' | 'refreshed'>,
  ) => Change[];
  /** The acknowledgement, if the step is the last; with `events` that are published with it. */
  readonly acknowledge: (step: ResyncStep, events: number) => Message[];
  /** The step is committed. */
  readonly committed: (step: ResyncStep) => void;
}

/** Of one task, from the opening of its log on: a request that was under way begins anew. */
export function resyncEvents(options: ResyncEventsOptions): ResyncEvents {
  const { resyncs, codec, images, hooks } = options;
  let id: string | undefined;
  let total = 0;
  const told = new Set<string>();

  const begin = ({ resync }: ResyncStep): void => {
    if (resync.id === id) return;
    id = resync.id;
    total = 0;
    told.clear();
  };
  const remember = (key: string): void => {
    told.add(key);
    if (told.size <= MAX_REMEMBERED) return;
    const [oldest] = told; // a Set keeps the order of insertion
    told.delete(oldest!);
  };

  return {
    again: (step, { read, changes, refreshed }) => {
      begin(step);
      const { since } = step.resync;
      const changed = new Map(changes.map((change) => [change.key, change]));
      const events: Change[] = [];
      for (const each of read.records) {
        const { key, updatedAt } = each;
        if (since !== null && updatedAt !== null && updatedAt < since) continue;
        if (told.has(key)) continue;
        const change = changed.get(key);
        const image = change?.images.after ?? images.get(key);
        if (!image) continue; // undecided: it is read again, and published then
        remember(key);
        const isFirst = change?.images.before === null;
        if (!isFirst) events.push(repetition(key, image, refreshed.get(key) ?? image, codec()));
      }
      return events;
    },
    acknowledge: (step, events) => {
      begin(step);
      total += events;
      const { resync, outcome } = step;
      return outcome ? [resyncs.acknowledge(resync, outcome, total)] : [];
    },
    committed: ({ resync, outcome }) => {
      if (!outcome) return;
      resyncs.acknowledged(resync);
      hooks.onResync({ id: resync.id, events: total, ...outcome });
      id = undefined;
      told.clear();
    },
  };
}

/** Beside its image a record may have newer volatile fields. */
function repetition(key: string, before: Buffer, after: Buffer, codec: ImageCodec): Change {
  const decode = (bytes: Buffer) => codec.decode(bytes);
  const images = { before, after };
  const updatedAt = instantOf(decode(after), 'updated_at');
  return new DecodedChange({ key, op: 'r', images, updatedAt }, decode);
}

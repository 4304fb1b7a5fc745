/** What a partition lacks: it ends sooner than it did, or begins later. */
export interface Gap {
  readonly partition: number;
  readonly kind: 'ends' | 'begins';
  /** Where it ended, or began. */
  readonly before: bigint;
  /** Where it does now. */
  readonly now: bigint;
}

/** A partition whose live keys are not those that were published: there are more or fewer, or they are of older events. */
export interface KeyGap {
  readonly partition: number;
  /** How many there were, and are. */
  readonly before: number;
  readonly now: number;
}

/** What a task's topic has lost of the events that were written to it. */
export interface LostEvents {
  readonly topic: string;
  /** By partition; none where it shows in nothing but the offsets that the newest messages were given. */
  readonly gaps: readonly Gap[];
  /** How many offsets are gone, as far as it can be told. */
  readonly offsets: number;
  /** By partition, where count or digest of the live keys show it, and no offset does. Default none. */
  readonly keys?: readonly KeyGap[];
}

/** Partitions that are named in a line. */
const MAX_NAMED = 8;

/** What is lost, how it can have come, and what comes of it, in one line. */
export function lossText({ topic, gaps, keys = [] }: LostEvents): string {
  if (keys.length > 0) return differenceText(topic, keys);
  const named = gaps
    .slice(0, MAX_NAMED)
    .map(({ partition, kind, before, now }) => {
      const gone = before > now ? before - now : now - before;
      return `partition ${partition} ${kind} at ${now} and not at ${before} (${gone} offsets)`;
    })
    .join(', ');
  const more = gaps.length > MAX_NAMED ? `, and ${gaps.length - MAX_NAMED} more` : '';
  const where = gaps.length > 0 ? `: ${named}${more}` : '';
  const causes = [
    ...(gaps.length === 0 || gaps.some(({ kind }) => kind === 'ends')
      ? ['the topic was deleted and made anew, or a broker that lacked its end became its leader']
      : []),
    ...(gaps.some(({ kind }) => kind === 'begins')
      ? ['records were deleted from its beginning, by hand or by a cleanup.policy with delete']
      : []),
  ];
  return `${topic} has lost events that were published${where}: ${causes.join('; ')}. ${READ_AGAIN}`;
}

function differenceText(topic: string, keys: readonly KeyGap[]): string {
  const named = keys
    .slice(0, MAX_NAMED)
    .map(({ partition, before, now }) =>
      before === now
        ? `partition ${partition} has ${now} live keys, some with other events than the newest that were published`
        : `partition ${partition} has ${now} live keys and not ${before}`,
    )
    .join(', ');
  const more = keys.length > MAX_NAMED ? `, and ${keys.length - MAX_NAMED} more` : '';
  return `${topic} is not what was published: ${named}${more}: records were taken from it by a cleanup.policy with delete, it was deleted and filled from elsewhere, or it was restored from a backup. ${READ_AGAIN}`;
}

const READ_AGAIN =
  'Its list is read again: what the topic lacks comes again as r, without status changes';

/**
 * Lost events of a partition, as a range of offsets. `kind`: `ends` if the partition's end is lower than it was, `begins` if its beginning
 * is higher than it was.
 */
export interface Gap {
  readonly partition: number;
  readonly kind: 'ends' | 'begins';
  /** Last known offset of the partition's end or beginning before the loss, depending on `kind`. */
  readonly before: bigint;
  /** Current offset of the partition's end or beginning, depending on `kind`. */
  readonly now: bigint;
}

/** A partition whose live keys, or their newest events, differ from those published. A key is live if its newest event is no deletion. */
export interface KeyGap {
  readonly partition: number;
  /** Number of live keys that the partition should have according to what was published. `now` is the number that it has. */
  readonly before: number;
  readonly now: number;
}

/** Events that were published and are missing from a task's topic. */
export interface LostEvents {
  readonly topic: string;
  /** Ranges of offsets whose events are lost. Empty if the loss does not show in the first and end offsets of the partitions. */
  readonly gaps: readonly Gap[];
  /** Number of lost offsets: the total size of all `gaps`; 0 if `gaps` is empty. */
  readonly offsets: number;
  /**
   * Partitions that have lost events according to the number or the digest of their live keys, although their offsets show no loss.
   * Default: none.
   */
  readonly keys?: readonly KeyGap[];
}

/** Maximum number of partitions that are named in one text. */
const MAX_NAMED = 8;

export function lostEventsText({ topic, gaps, keys = [] }: LostEvents): string {
  if (keys.length > 0) return keyGapsText(topic, keys);
  const named = listed(gaps, ({ partition, kind, before, now }) => {
    const missing = before > now ? before - now : now - before;
    return `partition ${partition} ${kind} at ${now} and not at ${before} (${missing} offsets)`;
  });
  const where = gaps.length > 0 ? `: ${named}` : '';
  const causes: string[] = [];
  if (gaps.length === 0 || gaps.some(({ kind }) => kind === 'ends'))
    causes.push(
      'the topic was deleted and recreated, or a broker without its newest messages became partition leader',
    );
  if (gaps.some(({ kind }) => kind === 'begins'))
    causes.push(
      'records were deleted from its beginning, by hand or by a cleanup.policy with delete',
    );
  return `${topic} has lost published events${where}: ${causes.join('; ')}. ${RECOVERY_TEXT}`;
}

function keyGapsText(topic: string, keys: readonly KeyGap[]): string {
  const named = listed(keys, ({ partition, before, now }) =>
    before === now
      ? `partition ${partition} has ${now} live keys, some with other events than the newest that were published`
      : `partition ${partition} has ${now} live keys and not ${before}`,
  );
  return `${topic} does not hold what was published: ${named}: records were deleted from it by a cleanup.policy with delete, it was deleted and refilled from another source, or it was restored from a backup. ${RECOVERY_TEXT}`;
}

function listed<T>(items: readonly T[], textOf: (item: T) => string): string {
  const named = items.slice(0, MAX_NAMED).map(textOf).join(', ');
  return items.length > MAX_NAMED ? `${named}, and ${items.length - MAX_NAMED} more` : named;
}

const RECOVERY_TEXT =
  'The list is read again: missing records are published again with op r, without status changes';

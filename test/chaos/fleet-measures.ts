import type { SandboxAccount, Resource } from '../../src/sandbox/index.ts';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { TestAccount } from '../integration/support/fleet.ts';
import type { Read } from '../integration/support/topic-reader.ts';

/** A part of the run, ms since the epoch. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** When an account was first answered behind a moment; undefined until it is. */
export function answeredAfter(
  { truth }: Pick<SandboxAccount, 'truth'>,
  moment: number,
): number | undefined {
  const first = RESOURCES.flatMap((resource) => {
    let found: number | undefined;
    for (const { at, status } of truth.requests(resource).toReversed()) {
      if (at <= moment) break;
      if (status === 200) found = at;
    }
    return found ?? [];
  });
  return first.length > 0 ? Math.min(...first) : undefined;
}

/** When any list of an account was answered, in order. */
function answersTo({ truth }: SandboxAccount): readonly number[] {
  const of = (resource: Resource) =>
    truth.requests(resource).flatMap(({ at, status }) => (status === 200 ? [at] : []));
  return RESOURCES.flatMap(of).toSorted((a, b) => a - b);
}

/** The longest time without an answer that lies in a span at least in part, ms. */
export function longestSilence(
  { sandbox }: Pick<TestAccount, 'sandbox'>,
  { from, to }: Span,
): number {
  let longest = 0;
  let last: number | undefined;
  for (const at of answersTo(sandbox)) {
    if (last !== undefined && at >= from) longest = Math.max(longest, at - last);
    if (at > to) break;
    last = at;
  }
  return longest;
}

/** From a change at the API to its event, of all changes that were published in a span: ms. */
export function freshness(events: readonly Read[], { from, to }: Span): number[] {
  return events.flatMap(({ value, timestamp }) => {
    const { op, after } = (value ?? {}) as { op?: string; after?: { updated_at?: string } };
    if ((op !== 'c' && op !== 'u') || !after?.updated_at) return [];
    if (timestamp < from || timestamp > to) return [];
    return [timestamp - Date.parse(after.updated_at)];
  });
}

/** The value that this share of all does not exceed; 0 of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? 0;
}

/** Median, 99th percentile and the most, in seconds. */
export function inWords(values: readonly number[]): string {
  const [half, most, all] = [0.5, 0.99, 1].map((share) => quantile(values, share) / 1_000);
  return `n ${values.length}, p50 ${half!.toFixed(1)} s, p99 ${most!.toFixed(1)} s, most ${all!.toFixed(1)} s`;
}

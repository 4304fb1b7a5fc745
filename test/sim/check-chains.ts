import { canonicalJson } from '../../src/schemas/json/json.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import { PROOF_MS } from './draw.ts';
import type { Chains, PublishedEvent } from './published.ts';
import type { SimList } from './sim-list.ts';

/** What is said in the settings of the field that differs in every answer; undefined where there is none. */
export type Volatility = 'told' | 'untold' | undefined;

/**
 * Holds what was published against what could be seen: chains whole, sequences rising, nothing
 * twice, nothing made up, never back to an older state, no deletion of what was there, nor of what has
 * not been gone for long enough. What was taken away from the topic comes again as `r`, if it is still there, and as
 * nothing else.
 *
 * Back to an older state only where the list itself says that it is the newer one, by a later
 * `updated_at`: the clock was set back in between, or two commits that were late became visible in the
 * other order. Reads that overlap have nothing else to go by.
 *
 * Where some answers come from a replica that lags, or from a cache (`isBehind`), a state with the same `updated_at`, or without one, may
 * come late if it was not published before: nothing tells it from a new one. What was published never comes back, nor does a deleted record;
 * it may if a field differs in every answer, and the settings do not name it: then nothing tells that it was published.
 */
export function checkChains(
  chains: Chains,
  list: Pick<SimList, 'history' | 'hidden'>,
  volatility: Volatility,
  isBehind: boolean,
  /** Least time from the deletion of a record to its event, ms. Lists that show tombstones need none. */
  proofMs = PROOF_MS,
): string[] {
  const violations: string[] = [];
  for (const [key, chain] of chains) {
    const say = (what: string) => violations.push(`${key}: ${what}`);
    const sights = list.history.get(key) ?? [];
    const placeOf = new Map(sights.map(({ json }, place) => [json?.version, place]));
    let last: PublishedEvent | undefined;
    let place = -1; // of the newest image among what could be seen
    const published = new Set<unknown>();
    chain.forEach((event, k) => {
      const [earlier, next] = [chain[k - 1], chain[k + 1]];
      if (event === 'tombstone') {
        if (earlier === undefined || earlier === 'tombstone' || earlier.op !== 'd')
          say('a tombstone without a deletion');
        return;
      }
      const { op, sequence, at, before, record } = event;
      // Where nothing says when a record was made, one that the initial snapshot has missed, as it moved, passes for new.
      const comesAgain = op === 'r' || (op === 'c' && record?.created_at === undefined);
      const isAgain = comesAgain && before === null && last !== undefined && last.lostAt <= at;
      if (!isAgain && !isSame(last ?? null, event))
        say(`before is not the previous after, at ${sequence}`);
      const isRepeated = op === 'r' && before !== null;
      const isUnchanged = before !== null && isEqualBut(volatility, event);
      if (isUnchanged !== isRepeated)
        say(isRepeated ? 'repeated with a change' : 'an event without a change');
      if (last && sequence <= last.sequence) say(`sequence ${sequence} after ${last.sequence}`);
      if (!isRepeated && (before === null) !== (op === 'r' || op === 'c'))
        say(`${op} out of place`);
      if (op === 'd' && next !== 'tombstone') say('a deletion without a tombstone');
      const goneAt = sights.findLast((sight) => sight.json === null && sight.at <= at)?.at;
      if (op === 'd' && goneAt === undefined) say('deleted although it was there');
      // One that was hidden may have gone before it was seen again.
      const absentFor = at - Math.min(goneAt ?? -Infinity, list.hidden(key).from);
      if (op === 'd' && absentFor < proofMs) say(`deleted ${absentFor} ms after it was gone`);

      if (isRepeated) {
        last = event;
        return;
      }
      const found = record
        ? (placeOf.get(record.version) ?? -1)
        : sights.findIndex(({ json }, n) => n > place && json === null);
      const sight = sights[found];
      const isBack =
        (isAgain || volatility === 'untold' ? found < place : found <= place) &&
        !isStampedLater(sight?.json, sights[place]?.json);
      // The deletion of a record that was hidden before may be published as soon as it is gone: a lagging answer may still show it.
      const seenAt = sights[place]?.at ?? -Infinity;
      const isShownAgain = last?.op === 'd' && last.at - seenAt < proofMs;
      const comesLate =
        isBehind &&
        (isShownAgain ||
          (hasSameStamp(sight?.json, sights[place]?.json) &&
            (volatility === 'untold' || !published.has(record?.version))));
      published.add(record?.version);
      if (!sight || (isBack && !comesLate) || sight.at > at || !isEqual(sight.json, record))
        say(`${text(record)} was never to be seen, or before what is published already`);
      else place = found;
      last = event;
    });
  }
  return violations;
}

/** Holds what was published against what is there in the end: all of it, and nothing else. */
export function checkTruth(chains: Chains, list: Pick<SimList, 'truth'>): string[] {
  const violations: string[] = [];
  const truth = list.truth();
  for (const [key, json] of truth) {
    const last = chains.get(key)?.at(-1);
    const image = last && last !== 'tombstone' ? last.record : null;
    if (!image) violations.push(`${key}: is there, and not published`);
    else if (last !== 'tombstone' && last!.lostAt < Infinity)
      violations.push(`${key}: was taken away, and has not come again`);
    else if (!isEqual(image, json))
      violations.push(`${key}: ${text(image)} is not the truth: ${text(json)}`);
  }
  for (const [key, chain] of chains) {
    const last = chain.at(-1)!;
    if (last !== 'tombstone' && last.lostAt === Infinity && !truth.has(key))
      violations.push(`${key}: is gone, and not deleted`);
  }
  return violations;
}

/** Whether an event begins with the image that the one before has left. */
function isSame(last: PublishedEvent | null, event: PublishedEvent): boolean {
  const { before, schemaId, decode } = event;
  if (!before || !last?.after) return before === (last?.after ?? null);
  return last.schemaId === schemaId
    ? last.after.equals(before)
    : isEqual(last.record, decode(before));
}

/** Whether an event has nothing to tell: a field that differs in every answer is none, if that is told. */
function isEqualBut(
  volatility: Volatility,
  { before, after, record, decode }: PublishedEvent,
): boolean {
  return volatility === 'told'
    ? record !== null && isEqual(before && decode(before), record)
    : after !== null && before!.equals(after);
}

function isStampedLater(one?: JsonObject | null, other?: JsonObject | null): boolean {
  const [mine, its] = [one?.updated_at, other?.updated_at];
  return typeof mine === 'string' && typeof its === 'string' && mine > its;
}

function hasSameStamp(one?: JsonObject | null, other?: JsonObject | null): boolean {
  return !!one && !!other && one.updated_at === other.updated_at;
}

function isEqual(one: JsonObject | null, other: JsonObject | null): boolean {
  return text(one) === text(other);
}

function text(json: JsonObject | null): string {
  return json === null ? 'null' : canonicalJson(json);
}

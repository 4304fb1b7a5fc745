import { instantOf } from '../../src/schemas/avro/instant.ts';
import { MAX_LAG_MS } from '../../src/streams/http/response-age.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import type { Chains } from './published.ts';
import type { Heard, SimApi } from './sim-api.ts';
import { keyField } from './sim-list.ts';
import type { SimProcess } from './sim-process.ts';

/**
 * Nothing that was read is lost, where nothing fails: each version of a record that was in an
 * answer is published, unless its process was killed.
 *
 * But for one case. Of two answers that overlapped in time (each was asked for before the other had
 * come) nobody can tell which is older; the later `updated_at` is taken to be newer, and where that
 * does not decide, the record is asked for again. So a version may stay unpublished if an answer that
 * overlapped with its own said otherwise of its key, with an `updated_at` that was not earlier: one
 * that is later, the same or missing, or that there is no such record.
 *
 * And but for a version with an earlier `updated_at` than one before it, as after a clock was set back: it has to be read twice, some time
 * apart, and may be gone by then. So has one with the same `updated_at`, or without one, where `Date` was set back: for a while all answers
 * look as if they came from a cache. And so has such a version in the first seconds of a process that was not the first.
 *
 * Answers that only show why a page fails are not owed (`SimApi` marks them): pages of one or two records elsewhere, and what is behind the
 * front half of a page that is too large. The service reads those records again in smaller pages.
 */
export function checkHeard(
  chains: Chains,
  { heard, list, isDateSetBack }: Pick<SimApi, 'heard' | 'list' | 'isDateSetBack'>,
  processes: readonly Pick<SimProcess, 'name' | 'startedAt'>[],
): string[] {
  const violations: string[] = [];
  const field = keyField(list.traits.resource);
  const keyOf = (json: JsonObject) => JSON.stringify(json[field]);
  const published = new Map(
    [...chains].map(([key, chain]) => [
      key,
      new Set(chain.map((event) => (event === 'tombstone' ? null : event.record?.version))),
    ]),
  );
  const outdone = (answer: Heard, key: string, json: JsonObject) =>
    heard.some((other) => {
      if (other.begin > answer.end || other.end < answer.begin) return false;
      const found = other.rows.find((row) => keyOf(row.json) === key)?.json;
      if (!found) return provesAbsence(other, key);
      const [mine, its] = [instantOf(json, 'updated_at'), instantOf(found, 'updated_at')];
      return found.version !== json.version && (mine === null || its === null || its >= mine);
    });
  const successors = new Map(processes.slice(1).map((each) => [each.name, each.startedAt]));
  const isOfSuccessor = ({ at, client }: Heard) =>
    at - (successors.get(client.name) ?? -Infinity) < MAX_LAG_MS;
  const goesBack = (answer: Heard, key: string, json: JsonObject) => {
    const sights = list.history.get(key) ?? [];
    const place = sights.findIndex((sight) => sight.json?.version === json.version);
    const isInDoubt = isDateSetBack || isOfSuccessor(answer);
    const isUndated = json.updated_at === undefined;
    const mine = sights[place]?.updatedAt ?? Infinity;
    return sights
      .slice(0, place)
      .some(
        ({ updatedAt }) => updatedAt > mine || (isInDoubt && (isUndated || updatedAt === mine)),
      );
  };
  for (const answer of heard.filter(({ isOwed }) => isOwed)) {
    for (const { json } of answer.rows) {
      const key = keyOf(json);
      if (published.get(key)?.has(json.version) || outdone(answer, key, json)) continue;
      if (goesBack(answer, key, json)) continue;
      const at = new Date(answer.at).toISOString();
      violations.push(
        `${key}: version ${Number(json.version)} was read at ${at}, and never published`,
      );
    }
  }
  return violations;
}

/** Asked for by its number, or missing from what may be a whole list. */
function provesAbsence({ query }: Heard, key: string): boolean {
  return query.orderNumber === null ? query.window === null : query.orderNumber === key;
}

import { updatedAtOf } from '../../src/streams/records/updated-at.ts';
import type { JsonObject } from '../../src/schemas/json/json.ts';
import type { Chains } from './published.ts';
import type { Heard } from './sim-api.ts';
import { keyField } from './sim-list.ts';
import type { SimList } from './sim-list.ts';

/**
 * Nothing that was read is lost, where nothing fails: each version of a record that was in an
 * answer is published, unless its process was killed.
 *
 * But for one case. Of two answers that overlapped in time (each was asked for before the other had
 * come) nobody can tell which is older; the later `updated_at` is taken to be newer, and where that
 * does not decide, the record is asked for again. So a version may stay unpublished if an answer that
 * overlapped with its own said otherwise of its key, with an `updated_at` that was not earlier: one
 * that is later, the same or missing, or that there is no such record.
 */
export function checkHeard(chains: Chains, heard: readonly Heard[], list: SimList): string[] {
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
      const [mine, its] = [updatedAtOf(json), updatedAtOf(found)];
      return found.version !== json.version && (mine === null || its === null || its >= mine);
    });
  for (const answer of heard.filter(({ isOwed }) => isOwed)) {
    for (const { json } of answer.rows) {
      const key = keyOf(json);
      if (published.get(key)?.has(json.version) || outdone(answer, key, json)) continue;
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

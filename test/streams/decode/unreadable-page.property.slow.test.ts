import { lastValueFrom, toArray } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { stringifyJson } from '../../../src/schemas/json/json.ts';
import { pages } from '../../../src/streams/paging/pages.ts';
import { keyOfId, MovingList, randomOf, SORTS } from '../paging/moving-list.ts';
import { END, pageText, requestOf } from './text-list.ts';
import { scaled } from '../../support/scale.ts';

const SEEDS = scaled(1, 8);
/** Of the records of a list so many are no JSON: one in. */
const EACH = 40;

vi.setConfig({ testTimeout: 60_000 });

/** Ways in which a record's text can be no JSON. */
const WAYS = {
  'a word that is none': (text: string) => text.replace('}', ',"price":NaN}'),
  'a brace too many': (text: string) => `${text}}`,
  'a quote in a text': (text: string) => text.replace('}', ',"note":"5" tall"}'),
  'the end of the answer': (text: string) => text.replace('}', `,"price":${END}`),
} as const;

describe.each(SORTS)('a list in the order %s that moves, with records that are no JSON', (sort) => {
  it.each(Object.entries(WAYS))(
    'is read to its end, and nothing is lost: %s',
    async (way, broken) => {
      const isCutOff = way === 'the end of the answer';
      let requests = 0;
      let records = 0;
      for (let seed = 1; seed <= SEEDS; seed++) {
        const random = randomOf(seed);
        const [size, pageSize] = [200 + random(100), 20 + random(31)];
        const list = new MovingList({ seed, sort, size, churn: isCutOff ? 1 : 3 });
        const odd = new Set(list.initial.filter(() => random(EACH) === 0));
        const { list: request, met } = requestOf((offset, count) => {
          const { data, total, hasNext } = list.page(offset, count);
          const texts = data.map(({ json }) => {
            const { id } = json as { id: number };
            const text = stringifyJson(json);
            return odd.has(id) ? broken(text) : text;
          });
          return pageText(
            texts,
            0,
            count,
            JSON.stringify({ total_records: total, has_next_page: hasNext }),
          );
        });
        const scan$ = pages({
          request: (query) => request(query, (source) => source),
          keyOf: keyOfId,
          pageSize,
        });
        const sent = (await lastValueFrom(scan$.pipe(toArray()))).flatMap(
          ({ answer }) => answer.data,
        );
        const read = new Set(sent.map(({ json }) => keyOfId(json)));
        const texts = sent
          .filter(({ unreadableAt }) => unreadableAt !== undefined)
          .map(({ json }) => json as string);
        const still = list.initial.filter((id) => !list.touched.has(id));
        const missing = still.filter((id) =>
          odd.has(id) ? !texts.some((text) => text.includes(`"id":${id},`)) : !read.has(`${id}`),
        );
        expect(missing, `seed ${seed}`).toEqual([]);
        requests += met.length;
        records += odd.size;
      }
      // Pages included. What can only be read across a gap waits for the list to stand still.
      expect(requests / records).toBeLessThan(isCutOff ? 120 : 25);
    },
  );
});

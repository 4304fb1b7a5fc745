import { firstValueFrom, take, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { describeError } from '../../../src/core/errors.ts';
import type { Retry } from '../../../src/streams/flow/backoff.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import { UnreadableTexts } from '../../../src/streams/decode/decoded-page.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import { END, pageText, requestOf, shownIn } from './text-list.ts';

const limit: Limit = (source) => source;
const record = (n: number) => `{"id":${n}}`;
const records = (count: number) => Array.from({ length: count }, (_, n) => record(n));
/** So many records, some of them with another text. */
const listWith = (count: number, texts: Readonly<Record<number, string>>) =>
  records(count).map((text, n) => texts[n] ?? text);
/** What the answer has to show of it: all that is JSON, and the texts of what is none. */
const shown = (texts: readonly string[], from = 0) =>
  texts.map((text, n) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return `${from + n}: ${text.split(END, 1)[0]!}`;
    }
  });
const asked = async (texts: readonly string[], offset = 0, pageSize = 100) => {
  const { list, met } = requestOf((at, size) => pageText(texts, at, size));
  const answer = await firstValueFrom(list({ offset, pageSize }, limit));
  return { answer, met, list };
};

const NAN = '{"id":7,"price":NaN}';

describe('a page that is no JSON because of a record', () => {
  it.each([
    ['NaN', NAN],
    ['a comma too many', '{"id":7,}'],
    ['an escape that is none', '{"id":7,"note":"\\x41"}'],
    ['a line feed in a text', '{"id":7,"note":"one\ntwo"}'],
    ['two quotes in a text', '{"id":7,"note":"a "good" year"}'],
    ['nothing like a record', 'undefined'],
  ])('is given after five tries, all of it but that record: %s', async (_, text) => {
    const texts = listWith(10, { 7: text });
    const { answer, met } = await asked(texts);
    expect(shownIn(answer)).toEqual(shown(texts));
    expect([answer.total, answer.hasNext]).toEqual([10, false]);
    expect(met).toEqual(Array.from({ length: 5 }, () => '0+100'));
  });

  it.each([
    ['a quote in a text', '{"id":7,"note":"5" tall"}'],
    ['a text without an end', '{"id":7,"note":"tall}'],
    ['a brace too few', '{"id":7,"note":{"tall":1}'],
    ['a brace too many', '{"id":7}}'],
    ['a bracket too many', '{"id":7,"notes":[1]]}'],
  ])('is read around it once it was asked for alone: %s', async (_, text) => {
    const texts = listWith(10, { 7: text });
    const { answer, met } = await asked(texts);
    expect(shownIn(answer)).toEqual(shown(texts));
    expect(met.slice(5)).toEqual(['7+1', '0+100']);
  });

  it.each([
    ['in the middle', 7],
    ['the first one', 0],
    ['the last one', 9],
  ])('is put together where the server ends its answer in it: %s', async (_, place) => {
    const texts = listWith(10, { [place]: `{"id":${place},"price":${END}` });
    const { answer, met } = await asked(texts);
    expect(shownIn(answer)).toEqual(shown(texts));
    expect([answer.total, answer.hasNext]).toEqual([10, false]);
    const before = place > 0 ? [`0+${place}`] : [];
    expect(met.slice(5)).toEqual([
      `${place}+1`,
      `${place + 1}+${99 - place}`,
      ...before,
      `${place}+1`,
    ]);
  });

  it.each([
    ['several', listWith(20, { 3: NAN, 4: 'x', 11: '{"id":1' + '1}}', 19: '{' })],
    [
      'two side by side in which the server ends its answer',
      listWith(9, { 4: `{"a":${END}`, 5: `{"b":${END}` }),
    ],
    ['one in which it does, and others', listWith(9, { 2: NAN, 4: `{"a":${END}`, 7: NAN })],
    ['a list of one', ['{"id":'.concat('NaN}')]],
    ['a list of one in which it does', [`{"id":${END}`]],
    ['a whole list', ['{"id":NaN}', 'x', '{"id":2']],
  ])('may have more than one of them: %s', async (_, texts) => {
    const { list } = requestOf((at, size) => pageText(texts, at, size));
    const read: unknown[] = [];
    for (let offset = 0; offset < texts.length;) {
      const answer = await firstValueFrom(list({ offset, pageSize: 100 }, limit));
      read.push(...shownIn(answer));
      offset += answer.data.length;
    }
    expect(read).toEqual(shown(texts));
  });

  it('takes no records for a part of one, where two of them hide where they end', async () => {
    const texts = listWith(10, { 2: '{"id":2,"note":"5" tall"}', 6: '{"id":6,"note":"6" tall"}' });
    const { answer } = await asked(texts);
    expect(shownIn(answer)).toEqual(shown(texts));
  });

  it('is asked for once when its records are known to be none', async () => {
    const texts = new UnreadableTexts();
    for (const text of [NAN, '{"id":7,"note":"5" tall"}']) {
      const list = listWith(10, { 7: text });
      const first = requestOf((at, size) => pageText(list, at, size), { texts });
      await firstValueFrom(first.list({ offset: 0, pageSize: 100 }, limit));
      const moved = [record(-1), ...list];
      const again = requestOf((at, size) => pageText(moved, at, size), { texts });
      const answer = await firstValueFrom(again.list({ offset: 2, pageSize: 100 }, limit));
      expect(shownIn(answer)).toEqual(shown(moved.slice(2), 2));
      expect(again.met).toEqual(['2+100']);
    }
  });

  it('is not tried again and again where the server ends its answer in the same record', async () => {
    const { list, met } = requestOf((at, size) =>
      pageText(listWith(10, { 7: `{"a":${END}` }), at, size),
    );
    await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
    met.length = 0;
    await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
    expect(met).toEqual(['0+100', '7+1', '8+92', '0+7', '7+1']);
  });

  it('is put together where the text of the record is another one in each answer', async () => {
    for (const end of ['" tall"}', END]) {
      let answers = 0;
      const long = 'x'.repeat(60);
      const { list } = requestOf((at, size) =>
        pageText(listWith(10, { 7: `{"id":7,"note":"${long}${(answers += 1)}${end}` }), at, size),
      );
      const answer = await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
      const read = shownIn(answer);
      expect(read.splice(7, 1)).toEqual([expect.stringContaining(`7: {"id":7,"note":"${long}`)]);
      expect(read).toEqual(shown(records(10).filter((_, n) => n !== 7)));
    }
  });

  it('is given by halves where it is too much for somebody, when the record there can be read alone', async () => {
    const texts = records(40);
    const { list, met } = requestOf((at, size) => pageText(texts, at, size).slice(0, 200));
    const answer = await firstValueFrom(list({ offset: 0, pageSize: 30 }, limit));
    const count = answer.data.length;
    expect(shownIn(answer)).toEqual(shown(texts.slice(0, count)));
    expect(answer.hasNext).toBe(true);
    expect(met.slice(5)).toEqual([expect.stringMatching(/\+1$/), `0+${count}`]);
  });

  it('is put together where the server gives smaller pages than it is asked for', async () => {
    for (const text of [NAN, '{"id":7}}']) {
      const texts = listWith(40, { 7: text });
      const { list } = requestOf((at, size) => pageText(texts, at, Math.min(size, 20)));
      const answer = await firstValueFrom(list({ offset: 2, pageSize: 30 }, limit));
      expect(answer.data.length).toBeGreaterThan(6);
      expect(shownIn(answer)).toEqual(shown(texts.slice(2, 2 + answer.data.length), 2));
    }
  });

  it('holds up no read that is open', async () => {
    for (const text of [NAN, '{"id":7}}', `{"id":${END}`]) {
      const clock = new LogicalClock();
      const texts = listWith(10, { 7: text });
      const { list } = requestOf((at, size) => pageText(texts, at, size), { logicalClock: clock });
      const { span } = await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
      expect(clock.oldest()).toBe(span.begin);
      clock.settle(span.begin);
      expect(clock.oldest()).toBe(Infinity);
    }
  });
});

describe('a record in which the server ends its answer', () => {
  const ended = listWith(10, { 7: `{"id":${END}` });

  it.each([
    ['the record is elsewhere', (texts: string[]) => [record(-1), ...texts]],
    ['the record can be read', () => records(10)],
    ['the record has another text', () => listWith(10, { 7: `{"id":7,${END}` })],
  ])('is not crossed while the list moves: %s', async (_, move) => {
    const retried: Retry[] = [];
    let texts = ended;
    const { list, met } = requestOf(
      (at, size) => {
        if (met.length === 9) texts = move(texts); // when it is looked at once more
        return pageText(texts, at, size);
      },
      { hooks: { onRetry: (retry) => retried.push(retry) } },
    );
    const answer = await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
    expect(shownIn(answer)).toEqual(shown(texts));
    expect(describeError(retried.at(-1)!.error)).toMatch(/not JSON/);
    expect(met.length).toBeGreaterThan(9);
  });

  it('is one of so many in a row that it is no fault of theirs: they are waited for, with longer pauses', async () => {
    const pauses: number[] = [];
    const texts = Array.from({ length: 40 }, () => `{"id":${END}`);
    const { list, met } = requestOf((at, size) => pageText(texts, at, size), {
      hooks: {
        onRetry: ({ error, delayMs }) => {
          if (describeError(error).includes('around it')) pauses.push(delayMs);
          if (pauses.length === 4) throw new Error('enough');
        },
      },
    });
    const failure = firstValueFrom(list({ offset: 0, pageSize: 30 }, limit));
    await expect(failure).rejects.toThrow('enough');
    expect(pauses).toEqual([4_000, 8_000, 16_000, 30_000]);
    expect(met.length / pauses.length).toBeLessThan(30);
  });
});

describe('a page that is no JSON, but not by its records', () => {
  it.each([
    ['the pagination', pageText(records(3), 0, 3, '{"total_records":NaN}')],
    [
      'something of the envelope',
      `{"data":[${records(3).join()}],"a":01,"pagination":{"total_records":3,"has_next_page":false}}`,
    ],
    ['all of it', '<html>Back soon</html>'],
    ['nothing', ''],
  ])('is asked for again with longer pauses, and another one beside it: %s', async (_, text) => {
    let tries = 0;
    const { list, met, waits } = requestOf((at, size) =>
      (tries += 1) <= 30 ? text : pageText(records(3), at, size),
    );
    const answer = await firstValueFrom(list({ offset: 0, pageSize: 3 }, limit));
    expect(shownIn(answer)).toEqual(shown(records(3)));
    expect(new Set(met.slice(0, 30))).toEqual(new Set(['0+3', '3+1']));
    expect(waits.filter((ms) => ms >= 30_000).length).toBeGreaterThan(3);
  });

  it('is passed by where it is right again within five tries', async () => {
    let tries = 0;
    const bad = listWith(3, { 1: NAN });
    const { list, met } = requestOf((at, size) =>
      pageText((tries += 1) < 5 ? bad : records(3), at, size),
    );
    const answer = await firstValueFrom(list({ offset: 0, pageSize: 3 }, limit));
    expect(shownIn(answer)).toEqual(shown(records(3)));
    expect(met).toHaveLength(5);
  });
});

it('a byte order mark before a page is passed over', async () => {
  const { list, met } = requestOf((at, size) => `\ufeff${pageText(records(3), at, size)}`);
  const answers = await firstValueFrom(
    list({ offset: 0, pageSize: 3 }, limit).pipe(take(1), toArray()),
  );
  expect(answers.map(shownIn)).toEqual([shown(records(3))]);
  expect(met).toHaveLength(1);
});

it('a single order that is no JSON comes as such, whatever is wrong with it', async () => {
  for (const text of [NAN, '{"id":7}}', `{"id":${END}`]) {
    const { list } = requestOf(() => pageText([text], 0, 1));
    const { data, total } = await firstValueFrom(list({ key: '7' }, limit));
    expect(data).toMatchObject([{ unreadableAt: 0 }]);
    expect(total).toBe(1);
  }
});

it('nothing of a record that is no JSON is in an error', async () => {
  const retried: string[] = [];
  const texts = listWith(3, { 1: '{"email":"jane@example.com"}}' });
  const { list } = requestOf((at, size) => pageText(texts, at, size), {
    hooks: {
      onRetry: ({ error }) => retried.push(`${describeError(error)} ${JSON.stringify(error)}`),
    },
  });
  await firstValueFrom(list({ offset: 0, pageSize: 3 }, limit));
  expect(retried.length).toBeGreaterThan(3);
  expect(retried.join()).not.toMatch(/jane/);
});

import { firstValueFrom, of } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { parsingDecoder } from '../../../src/streams/decode/decoder.ts';
import type { Decoder } from '../../../src/streams/decode/decoder.ts';
import { FailingOffsets } from '../../../src/streams/decode/around-failing.ts';
import { LogicalClock } from '../../../src/streams/http/logical-clock.ts';
import { PagePlan } from '../../../src/streams/http/page-plan.ts';
import type { Limit } from '../../../src/streams/quota/token-bucket.ts';
import type { JsonValue } from '../../../src/schemas/json/json.ts';
import { answering } from '../../support/answering.ts';
import { hurriedTime } from '../../support/hurried-time.ts';
import { listOf, ORDERS, pageText, shownIn } from './text-list.ts';
import type { ListOptions } from './text-list.ts';

const limit: Limit = (source) => source;
const records = (count: number) => Array.from({ length: count }, (_, n) => `{"id":${n}}`);
const keyOf = (json: JsonValue) => String((json as { id: number }).id);

/** Answers with 200 that are no page. */
const NO_PAGES = { html: '<h1>oops</h1>', nothing: '', error: '{"success":false}' } as const;
type Reply = number | 'drop' | keyof typeof NO_PAGES | undefined;

/** A list whose requests fail as `fails` says: with a status, without an answer, or with one that is no page. */
function serverOf(
  texts: readonly string[],
  fails: (offset: number, pageSize: number, nth: number) => Reply,
  options: Partial<ListOptions> = {},
  headersOf: (offset: number) => Record<string, string> = () => ({}),
) {
  const met: string[] = [];
  const { scheduler, waits } = hurriedTime();
  const token = { text: 't', askedAt: 0, lifeMs: 1e9, serverTime: undefined };
  const dispatcher = answering(({ path }) => {
    const query = new URL(String(path), 'http://list').searchParams;
    const [offset, pageSize] = [Number(query.get('offset')), Number(query.get('pageSize'))];
    met.push(`${offset}+${pageSize}`);
    if (met.length > 2_000) throw new Error('the requests do not end');
    const status = fails(offset, pageSize, met.length);
    if (status === 'drop')
      return Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
    if (typeof status === 'string') {
      return Promise.resolve({ status: 200, headers: {}, text: NO_PAGES[status] });
    }
    const text = status === undefined ? pageText(texts, offset, pageSize) : '<h1>oops</h1>';
    return Promise.resolve({ status: status ?? 200, headers: headersOf(offset), text });
  });
  const list = listOf({
    baseUrl: new URL('http://list.test'),
    list: ORDERS,
    dispatcher,
    tokens: {
      token$: of(token),
      current: () => token,
      report: () => ({ isFinal: false, pauseMs: undefined, logsIn: false }),
    },
    scheduler,
    random: () => 1,
    decode: parsingDecoder(keyOf),
    ...options,
  });
  return { list, met, waits };
}

const holds = (at: number) => (offset: number, pageSize: number) =>
  offset <= at && at < offset + pageSize;
const poisoned =
  (...at: number[]) =>
  (offset: number, pageSize: number) =>
    at.some((each) => holds(each)(offset, pageSize)) ? 500 : undefined;

describe('a page that fails because of one record', () => {
  it.each([
    ['in the middle', 95, 500],
    ['the first', 0, 500],
    ['the last', 999, 500],
    ['without an answer', 95, 'drop'],
    ['refused for good', 95, 400],
    ['a page of HTML with status 200', 95, 'html'],
    ['an empty body with status 200', 95, 'nothing'],
    ['an error in JSON with status 200', 95, 'error'],
  ] as const)('is read around it: %s', async (_, at, reply) => {
    const fails = (offset: number, pageSize: number) =>
      holds(at)(offset, pageSize) ? reply : undefined;
    const { list, met } = serverOf(records(1_000), fails);
    const answer = await firstValueFrom(list({ offset: 0, pageSize: 1_000 }, limit));
    expect(answer.data).toHaveLength(1_000);
    expect(answer.data[at]).toMatchObject({ unreadableAt: at });
    expect(answer.hasGap).toBe(true);
    const read = shownIn(answer).filter((__, n) => n !== at);
    expect(read).toEqual(
      records(1_000)
        .map((text) => JSON.parse(text) as unknown)
        .filter((__, n) => n !== at),
    );
    expect(met.length).toBeLessThan(40);
  });

  it('can still be read once it has come: the bodies of its parts are not given back', async () => {
    const bodies = new Set<Parameters<Decoder>[0]>();
    const decode: Decoder = (body, at) => {
      bodies.add(body);
      return parsingDecoder(keyOf)(body, at);
    };
    const { list } = serverOf(records(1_000), poisoned(95), { decode });
    await firstValueFrom(list({ offset: 0, pageSize: 1_000 }, limit));
    expect(() => [...bodies].map(({ bytes }) => bytes)).not.toThrow();
  });

  it('costs three requests when it is read again, and one once the record can be had', async () => {
    let isPoisoned = true;
    const places = new FailingOffsets();
    const { list, met } = serverOf(
      records(1_000),
      (offset, pageSize) => (isPoisoned ? poisoned(95)(offset, pageSize) : undefined),
      { failingOffsets: places },
    );
    const page = () => firstValueFrom(list({ offset: 0, pageSize: 1_000 }, limit));
    await page();
    met.length = 0;
    expect((await page()).hasGap).toBe(true);
    expect(met).toEqual(['0+1000', '96+904', '0+95']);
    isPoisoned = false;
    met.length = 0;
    const mended = await page();
    expect(mended.data).toHaveLength(1_000);
    expect(mended.hasGap).toBeUndefined();
    expect(met).toEqual(['0+1000']);
  });

  it('is read around several of them, page by page', async () => {
    const bad = [3, 4, 40, 77];
    const { list } = serverOf(records(100), poisoned(...bad));
    const read = new Set<number>();
    const gaps = new Set<number>();
    for (let offset = 0; offset < 100;) {
      const answer = await firstValueFrom(list({ offset, pageSize: 50 }, limit));
      answer.data.forEach(({ unreadableAt, json }) =>
        unreadableAt === undefined ? read.add((json as { id: number }).id) : gaps.add(unreadableAt),
      );
      offset += answer.data.length;
    }
    expect([...gaps].sort((a, b) => a - b)).toEqual(bad);
    expect(read.size).toBe(96);
  });

  it('is read around it in whole pages', async () => {
    const plan = new PagePlan();
    plan.foundWhole();
    const multiples = (offset: number, pageSize: number) =>
      offset % pageSize === 0 ? poisoned(95)(offset, pageSize) : 400;
    const { list } = serverOf(records(300), multiples, { plan });
    const answer = await firstValueFrom(list({ offset: 90, pageSize: 90 }, limit));
    const begin = answer.offset ?? 90;
    expect(answer.data[95 - begin]).toMatchObject({ unreadableAt: 95 });
    expect(answer.data.length + begin).toBeGreaterThan(106);
    expect(begin).toBeLessThan(95);
  });

  it('tells of it in a text that has the key of the record in front', async () => {
    const { list } = serverOf(records(100), poisoned(95));
    const { data } = await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
    expect(data[95]!.json).toBe(
      '{"unanswered":"every page that holds the record fails","after":"94"}',
    );
  });

  it('tells of two side by side in two texts, so that each is reported', async () => {
    const { list } = serverOf(records(100), poisoned(40, 41));
    const { data } = await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
    const texts = data.filter((each) => each.unreadableAt !== undefined).map(({ json }) => json);
    expect(texts).toHaveLength(2);
    expect(new Set(texts).size).toBe(2);
  });

  it('holds up no read that is open', async () => {
    const clock = new LogicalClock();
    const { list } = serverOf(records(100), poisoned(95), { logicalClock: clock });
    const { span } = await firstValueFrom(list({ offset: 0, pageSize: 100 }, limit));
    expect(clock.oldest()).toBe(span.begin);
    clock.settle(span.begin);
    expect(clock.oldest()).toBe(Infinity);
  });
});

it('a page read around a failing record is as old as the oldest part, which came from a cache', async () => {
  for (const cached of [0, 96]) {
    const age = (offset: number) => ({ ...(offset === cached && { age: '60' }) });
    const { list } = serverOf(records(200), poisoned(95), {}, age);
    const answer = await firstValueFrom(list({ offset: 0, pageSize: 200 }, limit));
    expect(answer.hasGap).toBe(true);
    expect(answer.age?.staleMs).toBe(60_000);
  }
});

describe('pages that fail because they are large', () => {
  it.each([504, 413, 400, 'drop', 'html'] as const)(
    'become smaller, and grow again: %s',
    async (reply) => {
      let most = 500;
      const plan = new PagePlan();
      const { list, met } = serverOf(
        records(5_000),
        (offset, pageSize) => (pageSize > most && offset >= 2_000 ? reply : undefined),
        { plan },
      );
      const page = async (offset: number) => {
        const pageSize = plan.limit(1_000);
        const { data } = await firstValueFrom(list({ offset, pageSize }, limit));
        const { length } = data;
        plan.saw({ place: { offset, pageSize }, length, hasNext: true, reported: undefined });
        return length;
      };
      expect(await page(0)).toBe(1_000);
      expect(await page(2_000)).toBe(500);
      expect(plan.findings()).toEqual(['smaller']);
      met.length = 0;
      for (let n = 0; n < 9; n += 1) expect(await page(2_000)).toBe(500);
      expect(met).toHaveLength(9);
      most = 1_000;
      expect(plan.isTrying).toBe(true);
      expect(await page(2_000)).toBe(1_000);
      expect(plan.isTrying).toBe(false);
    },
  );

  it('stay below the largest that failed when one of a smaller size can be had again', () => {
    const plan = new PagePlan();
    plan.tooLarge(500, 1_000);
    plan.tooLarge(250, 500);
    const place = { offset: 0, pageSize: 500 };
    plan.saw({ place, length: 500, hasNext: true, reported: undefined });
    expect(plan.limit(1_000)).toBeLessThan(1_000);
  });
});

describe('an API that serves no record behind the 400th of 1,000', () => {
  const behind = (offset: number) => (offset >= 400 ? 400 : undefined);
  const reachingBehind = (offset: number, pageSize: number) =>
    offset + pageSize > 400 ? 400 : undefined;
  const page = (list: ReturnType<typeof serverOf>['list'], offset: number) =>
    firstValueFrom(list({ offset, pageSize: 100 }, limit));

  it.each([
    ['offsets from there on are refused', behind, 395, 100],
    ['pages that reach behind it are refused', reachingBehind, 390, 10],
    ['pages that reach behind it are refused, and it begins there', reachingBehind, 400, 0],
  ] as const)('has its list end there: %s', async (_, fails, offset, length) => {
    const plan = new PagePlan();
    const { list, met } = serverOf(records(1_000), fails, { plan });
    const last = await page(list, offset);
    expect(last.data).toHaveLength(length);
    const cut = length === 100 ? await page(list, offset + 95) : last;
    expect(cut).toMatchObject({
      isCut: true,
      total: 1_000,
      hasNext: false,
    });
    expect(cut.hasGap).toBeUndefined();
    expect(cut.data.some(({ unreadableAt }) => unreadableAt !== undefined)).toBe(false);
    expect(met.length).toBeLessThan(30);
    expect(plan.findings()).toEqual([]);
    met.length = 0;
    expect(await page(list, length === 100 ? offset + 95 : offset)).toMatchObject({ isCut: true });
    expect(met.length).toBeLessThanOrEqual(8);
  });

  it('has it go on once the limit is lifted', async () => {
    let isLimited = true;
    const plan = new PagePlan();
    const { list, met } = serverOf(
      records(1_000),
      (offset, pageSize) => (isLimited ? reachingBehind(offset, pageSize) : undefined),
      { plan },
    );
    expect(await page(list, 390)).toMatchObject({ isCut: true });
    isLimited = false;
    met.length = 0;
    expect((await page(list, 390)).data).toHaveLength(100);
    expect(met).toEqual(['390+100']);
  });

  it.each([500, 404, 'drop'] as const)(
    'has its list end there only after ten minutes where the failures may pass: %s',
    async (reply) => {
      const { list, met, waits } = serverOf(records(1_000), (offset) =>
        offset >= 400 ? reply : undefined,
      );
      expect(await page(list, 390)).toMatchObject({ data: { length: 100 } });
      expect(await page(list, 480)).toMatchObject({ isCut: true, data: [] });
      const waited = waits.reduce((sum, ms) => sum + ms, 0);
      expect(waited).toBeGreaterThan(10 * 60_000);
      expect(met.length).toBeLessThan(400);
    },
  );

  it('is not assumed when requests at every place fail by the time it is looked for', async () => {
    const plan = new PagePlan();
    const { list, met } = serverOf(
      records(1_000),
      // One page elsewhere comes; then the token dies for a while.
      (offset, _, nth) => (nth < 60 && (nth > 4 || offset >= 400) ? 400 : undefined),
      { plan },
    );
    const failure = firstValueFrom(list({ offset: 480, pageSize: 100 }, limit));
    await expect(failure).rejects.toMatchObject({ code: 'API_STATUS' });
    expect(plan.servedTo).toBe(Infinity);
    expect(met.length).toBeLessThan(60);
  });

  it('reads to the end where only pages that reach behind it are refused', async () => {
    const plan = new PagePlan();
    const { list } = serverOf(
      records(400),
      (offset, pageSize) => (offset + pageSize > 400 ? 400 : undefined),
      { plan },
    );
    const last = await page(list, 390);
    expect(last.data).toHaveLength(10);
    expect(last.isCut).toBeUndefined();
    expect(plan.limit(100)).toBe(100);
  });
});

describe('an API that is away', () => {
  it('is waited for with one request more in each round, and nothing is left out', async () => {
    let isAway = true;
    const { list, met, waits } = serverOf(records(1_000), (_, __, nth) => {
      if (nth > 60) isAway = false;
      return isAway ? 503 : undefined;
    });
    const answer = await firstValueFrom(list({ offset: 100, pageSize: 500 }, limit));
    expect(answer.hasGap).toBeUndefined();
    expect(new Set(met)).toEqual(new Set(['100+500', '1+1', '1+2']));
    expect(waits.filter((ms) => ms >= 30_000).length).toBeGreaterThan(15);
  });

  it('is not suspected for a few failures within seconds', async () => {
    const { list, met } = serverOf(records(10), (_, __, nth) => (nth < 5 ? 500 : undefined));
    await firstValueFrom(list({ offset: 0, pageSize: 10 }, limit));
    expect(new Set(met)).toEqual(new Set(['0+10']));
  });

  it.each(['drop', 503] as const)(
    'after it refused a page, as it does with a dead token, is waited for: %s beside the page',
    async (beside) => {
      const { list } = serverOf(records(30), (offset, _, nth) =>
        nth > 20 ? undefined : offset === 0 ? 400 : beside,
      );
      const answer = await firstValueFrom(list({ offset: 0, pageSize: 10 }, limit));
      expect(answer.data).toHaveLength(10);
    },
  );

  it('that refused one part of the list for a while is read in the end, at whichever request the refusals ended', async () => {
    for (const refused of Array.from({ length: 40 }, (_, n) => n + 1)) {
      const { list } = serverOf(records(30), (offset, _, nth) =>
        nth <= refused && offset === 0 ? 400 : undefined,
      );
      const answer = await firstValueFrom(list({ offset: 0, pageSize: 10 }, limit));
      expect(answer.data.length, `the first ${refused} refused`).toBeGreaterThan(0);
    }
  });

  it('a refusal of every page ends the reading with that refusal, as ever', async () => {
    const { list, met } = serverOf(records(10), () => 400);
    const failure = firstValueFrom(list({ offset: 0, pageSize: 10 }, limit));
    await expect(failure).rejects.toMatchObject({ code: 'API_STATUS', context: { status: 400 } });
    expect(met).toHaveLength(2);
  });
});

it('a page behind the end is empty where the server answers it with an error', async () => {
  for (const status of [400, 404, 416, 500]) {
    const { list } = serverOf(records(30), (offset) => (offset >= 30 ? status : undefined));
    const answer = await firstValueFrom(list({ offset: 40, pageSize: 10 }, limit));
    expect(answer.data).toEqual([]);
    expect([answer.total, answer.hasNext]).toEqual([30, false]);
  }
});

it('an offset that must be a multiple of pageSize is made one', async () => {
  const plan = new PagePlan();
  const clock = new LogicalClock();
  const { list, met } = serverOf(
    records(1_000),
    (offset, pageSize) => (offset % pageSize === 0 ? undefined : 400),
    { plan, logicalClock: clock },
  );
  const answer = await firstValueFrom(list({ offset: 95, pageSize: 100 }, limit));
  expect(plan.isWhole).toBe(true);
  expect(met.length).toBe(4);
  const begin = answer.offset ?? 95;
  expect(shownIn(answer)[0]).toEqual({ id: begin });
  expect(begin).toBeLessThanOrEqual(95);
  clock.settle(answer.span.begin);
  expect(clock.oldest()).toBe(Infinity);
});

it('a page that has to be made a whole one leaves no read open', async () => {
  const plan = new PagePlan();
  plan.foundWhole();
  const clock = new LogicalClock();
  const { list } = serverOf(
    records(1_000),
    (offset, pageSize) => (offset % pageSize === 0 ? undefined : 400),
    { plan, logicalClock: clock },
  );
  const answer = await firstValueFrom(list({ offset: 95, pageSize: 100 }, limit));
  clock.settle(answer.span.begin);
  expect(clock.oldest()).toBe(Infinity);
});

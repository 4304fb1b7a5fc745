import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

/** As in src/ops/page/live-page.ts, which is type-checked with the types of a browser. */
interface Connection {
  readonly isLive: boolean;
  readonly since?: number;
  readonly isReachable?: boolean;
}
interface Connecting {
  readonly StatusConnection: new (options: {
    url: string;
    statusUrl: string;
    onStatus: (status: unknown) => void;
    onConnection: (connection: Connection) => void;
  }) => object;
}
const MODULE = new URL('../../../src/ops/page/live-page.ts', import.meta.url).pathname;
const { StatusConnection } = (await import(MODULE)) as Connecting;

const START = 1_700_000_000_000;

/** A browser's EventSource, as far as it matters, driven by hand. */
class FakeSource {
  static readonly CLOSED = 2;
  static all: FakeSource[] = [];
  readyState = 1;
  readonly url: string;
  readonly #listeners = new Map<string, (event: { data?: string }) => void>();

  constructor(url: string) {
    this.url = url;
    FakeSource.all.push(this);
  }

  addEventListener(type: string, listener: (event: { data?: string }) => void): void {
    this.#listeners.set(type, listener);
  }

  close(): void {
    this.readyState = FakeSource.CLOSED;
  }

  say(status: unknown): void {
    if (this.readyState !== FakeSource.CLOSED)
      this.#listeners.get('status')!({ data: JSON.stringify(status) });
  }

  /** `forGood`: the browser does not try again. */
  fail(forGood: boolean): void {
    this.readyState = forGood ? FakeSource.CLOSED : 0;
    this.#listeners.get('error')!({});
  }
}

describe('the connection of the page', () => {
  let told: (string | number)[];
  /** What the status is answered with, when it is asked for; undefined: not at all. */
  let answer: { readonly ok: boolean; readonly json: () => Promise<unknown> } | undefined;
  let asked: string[];
  const newest = () => FakeSource.all.at(-1)!;
  const sayFor = (seconds: number) => {
    for (let nth = 0; nth < seconds; nth++) {
      newest().say(nth);
      vi.advanceTimersByTime(1_000);
    }
  };
  beforeEach(() => {
    vi.useFakeTimers({ now: START });
    FakeSource.all = [];
    vi.stubGlobal('EventSource', FakeSource);
    vi.stubGlobal('document', { addEventListener: () => undefined });
    vi.stubGlobal('addEventListener', () => undefined);
    told = [];
    answer = undefined;
    asked = [];
    vi.stubGlobal('fetch', (url: string) => {
      asked.push(url);
      return answer ? Promise.resolve(answer) : Promise.reject(new TypeError('Failed to fetch'));
    });
    new StatusConnection({
      url: 'status/events',
      statusUrl: 'status',
      onStatus: (status) => told.push(status as number),
      onConnection: ({ isLive, since, isReachable }) =>
        told.push(isLive ? 'live' : `${isReachable ? 'not told' : 'lost'} since ${since! - START}`),
    });
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('is live with the first word, and for as long as one comes each second', () => {
    sayFor(60);
    expect(told.slice(0, 3)).toEqual(['live', 0, 1]);
    expect(told).toHaveLength(61);
    expect(FakeSource.all).toHaveLength(1);
  });

  it('is lost less than three seconds after the last word, which is said once, and is replaced after five', () => {
    sayFor(3);
    told = [];
    vi.advanceTimersByTime(1_900); // 2.9 s after the last word
    expect(told).toEqual(['lost since 2000']);
    vi.advanceTimersByTime(1_900);
    expect(FakeSource.all).toHaveLength(1);
    vi.advanceTimersByTime(500);
    expect(FakeSource.all).toHaveLength(2);
    expect(FakeSource.all[0]!.readyState).toBe(FakeSource.CLOSED);
    newest().say('again');
    expect(told).toEqual(['lost since 2000', 'live', 'again']);
  });

  it('is tried again, for hours, when nothing answers', () => {
    vi.advanceTimersByTime(6 * 3_600_000);
    expect(told).toEqual(['lost since 0']);
    expect(FakeSource.all.length).toBeGreaterThan(3_750);
    expect(
      FakeSource.all.filter(({ readyState }) => readyState !== FakeSource.CLOSED),
    ).toHaveLength(1);
    newest().say('at last');
    expect(told.slice(1)).toEqual(['live', 'at last']);
  });

  it('is lost at once when the browser says so, and tried again when that gives up', () => {
    sayFor(1);
    newest().fail(false);
    expect(told.at(-1)).toBe('lost since 0');
    vi.advanceTimersByTime(1_000);
    expect(FakeSource.all).toHaveLength(1); // the browser tries by itself
    newest().fail(true);
    vi.advanceTimersByTime(200);
    expect(FakeSource.all).toHaveLength(2);
    newest().fail(true); // but not in a loop without a pause
    vi.advanceTimersByTime(800);
    expect(FakeSource.all).toHaveLength(2);
    vi.advanceTimersByTime(600);
    expect(FakeSource.all).toHaveLength(3);
  });

  it('asks for the status when no events come, at once and then each ten seconds, and says that it is answered', async () => {
    answer = { ok: true, json: () => Promise.resolve('the status') };
    newest().fail(true); // such as a 503: all places are taken
    await vi.advanceTimersByTimeAsync(100);
    expect(told).toEqual(['lost since 0', 'the status', 'not told since 0']);
    for (let tries = 0; tries < 10; tries++) {
      await vi.advanceTimersByTimeAsync(1_200);
      newest().fail(true);
    }
    expect(asked).toEqual(['status', 'status']);
    answer = { ok: false, json: () => Promise.reject(new Error('no JSON')) };
    await vi.advanceTimersByTimeAsync(10_000);
    expect(told.at(-1)).toBe('lost since 0');
    newest().say('a place at last');
    expect(told.slice(-2)).toEqual(['live', 'a place at last']);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(asked).toHaveLength(3);
  });

  it('leaves an answer aside that comes when events do again', async () => {
    answer = { ok: true, json: () => Promise.resolve('old') };
    newest().fail(true);
    newest().say('new'); // closed: says nothing
    vi.advanceTimersByTime(1_200);
    newest().say('new');
    await vi.advanceTimersByTimeAsync(100);
    expect(told).toEqual(['lost since 0', 'live', 'new']);
  });
});

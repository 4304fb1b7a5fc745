import { describe, expect, it, vi } from 'vitest';
import { oneProcess } from './one-process.ts';
import { chainsOf } from './published.ts';
import type { FutureEnd } from './sim-api.ts';

vi.setConfig({ testTimeout: 240_000 }); // hours of virtual time take seconds, and more where the machine is busy

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
/** Before all keys that the list begins with. */
const KEY = 1;

/** Orders of an API that is as written but for windows that end in the future. */
function story(futureEnd: FutureEnd, env: Record<string, string> = {}) {
  const lines: string[] = [];
  const { process, time, api, broker, registry, topic } = oneProcess({
    seed: 3,
    resource: 'orders',
    env: { PAGE_SIZE: '100', ...env },
    perMinute: 100,
    trace: (line) => lines.push(line),
    futureEnd,
  });
  const notes = () =>
    (chainsOf(broker.read(topic), registry).get(String(KEY)) ?? []).map((event) =>
      event === 'tombstone' ? undefined : event.record?.note,
    );
  let changes = 0;
  /** Time until a change is published, ms; Infinity if it is not within `withinMs`. */
  const lag = async (withinMs: number) => {
    const note = `change ${(changes += 1)}`;
    const at = time.now();
    api.list.alter(KEY, { note });
    while (time.now() - at < withinMs) {
      await time.pass(SECOND);
      if (notes().includes(note)) return time.now() - at;
    }
    return Infinity;
  };
  const told = (word: string) => lines.filter((line) => line.includes(word));
  return { process, time, lag, told };
}

describe.each<[FutureEnd, number]>([
  ['empty', 10 * SECOND],
  [500, 5 * MINUTE],
])('a list that answers a modifiedToDate in the future with: %s', (futureEnd, firstMs) => {
  it('is polled up to the time of the server, and each change comes soon', async () => {
    const { process, time, lag, told } = story(futureEnd);
    await time.pass(10 * SECOND);
    expect(await lag(10 * MINUTE)).toBeLessThan(firstMs);
    await time.pass(5 * MINUTE);
    for (let n = 0; n < 10; n += 1) expect(await lag(MINUTE)).toBeLessThan(10 * SECOND);
    expect(told('finds dates').at(-1)).toMatch(/takes modifiedToDate at the server's time/);
    expect([process.state, told('fails:')]).toEqual(['running', []]);
  });
});

it('the initial snapshot from START_FROM has every record of a list that shows nothing for a modifiedToDate in the future', async () => {
  const { time, told } = story('empty', { START_FROM: '2000-01-01T00:00:00Z' });
  await time.pass(10 * SECOND);
  expect(told('first-read publishes r').length).toBe(80);
});

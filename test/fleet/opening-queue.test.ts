import { setImmediate as turn } from 'node:timers/promises';
import { VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { openingQueue } from '../../src/fleet/account-work.ts';

/** Lists that are opened until they are told to end, by name, in the order in which they began. */
function opened(scheduler = new VirtualTimeScheduler()) {
  const opening = openingQueue(scheduler);
  const begun: string[] = [];
  const ends = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const open = (name: string, nth: number) =>
    opening(() => {
      begun.push(name);
      return new Promise<void>((resolve, reject) => ends.set(name, { resolve, reject }));
    }, nth);
  return { open, begun, ends, scheduler };
}

const SIX = ['1', '2', '3', '4', '5', '6'];

it('opens the first list of an account at once, whatever else is opened', async () => {
  const { open, begun } = opened();
  for (const name of SIX) void open(name, 1);
  void open('another', 1);
  void open('first of b', 0);
  void open('first of c', 0);
  await turn();
  expect(begun).toEqual([...SIX, 'first of b', 'first of c']);
});

it('opens the second lists of all accounts before the third one of any', async () => {
  const { open, begun, ends } = opened();
  for (const name of SIX) void open(name, 0);
  void open('third of a', 2);
  void open('second of a', 1);
  void open('third of b', 2);
  void open('second of b', 1);
  await turn();
  expect(begun).toEqual(SIX);
  for (const name of SIX.slice(0, 3)) ends.get(name)!.resolve();
  await turn();
  expect(begun.slice(6)).toEqual(['second of a', 'second of b', 'third of a']);
});

it('opens a list that begins again by itself, whatever its place', async () => {
  const { open, begun } = opened();
  void open('fourth of a', 3);
  await turn();
  expect(begun).toEqual(['fourth of a']);
});

it('lets the next one in behind an opening that has failed, and gives its error to who asked', async () => {
  const { open, begun, ends } = opened();
  const all = [...SIX, '7'].map((name) => open(name, 1));
  await turn();
  ends.get('2')!.reject(new Error('no such topic'));
  await expect(all[1]).rejects.toThrow('no such topic');
  expect(begun).toEqual([...SIX, '7']);
});

it('keeps nobody waiting for lists with many images: after five seconds others are opened beside them', async () => {
  const { open, begun, ends, scheduler } = opened();
  const names = Array.from({ length: 13 }, (_, nth) => String(nth + 1));
  for (const name of names) void open(name, 1);
  await turn();
  scheduler.flush();
  await turn();
  expect(begun).toHaveLength(12);
  // Their ends give no place back a second time.
  for (const name of SIX) ends.get(name)!.resolve();
  await turn();
  expect(begun).toHaveLength(12);
  ends.get('12')!.resolve();
  await turn();
  expect(begun).toHaveLength(13);
});

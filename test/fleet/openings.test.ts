import { setImmediate as turn } from 'node:timers/promises';
import { VirtualTimeScheduler } from 'rxjs';
import { expect, it } from 'vitest';
import { openings } from '../../src/fleet/openings.ts';

/** Lists that are opened until they are told to end, by name, in the order in which they began. */
function opened(scheduler = new VirtualTimeScheduler()) {
  const opening = openings(scheduler);
  const begun: string[] = [];
  const ends = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const open = (name: string, rank: 'first' | 'other') =>
    opening(() => {
      begun.push(name);
      return new Promise<void>((resolve, reject) => ends.set(name, { resolve, reject }));
    }, rank);
  return { open, begun, ends, scheduler };
}

it('opens four lists at once, and the first one of an account before all others that wait', async () => {
  const { open, begun, ends } = opened();
  for (const list of ['customers', 'inventory', 'clubs', 'members', 'products'])
    void open(`a ${list}`, 'other');
  void open('b orders', 'first');
  void open('c orders', 'first');
  await turn();
  expect(begun).toEqual(['a customers', 'a inventory', 'a clubs', 'a members']);
  for (const name of [...begun]) ends.get(name)!.resolve();
  await turn();
  expect(begun.slice(4)).toEqual(['b orders', 'c orders', 'a products']);
});

it('lets the next one in behind an opening that has failed, and gives its error to who asked', async () => {
  const { open, begun, ends } = opened();
  const all = ['1', '2', '3', '4', '5'].map((name) => open(name, 'other'));
  await turn();
  ends.get('2')!.reject(new Error('no such topic'));
  await expect(all[1]).rejects.toThrow('no such topic');
  expect(begun).toEqual(['1', '2', '3', '4', '5']);
});

it('keeps nobody waiting for lists with many images: after five seconds others are opened beside them', async () => {
  const { open, begun, ends, scheduler } = opened();
  for (const name of ['1', '2', '3', '4', '5', '6', '7', '8', '9']) void open(name, 'other');
  await turn();
  scheduler.flush();
  await turn();
  expect(begun).toEqual(['1', '2', '3', '4', '5', '6', '7', '8']);
  // Their ends give no place back a second time.
  ends.get('1')!.resolve();
  ends.get('2')!.resolve();
  await turn();
  expect(begun).toHaveLength(8);
  ends.get('8')!.resolve();
  await turn();
  expect(begun).toHaveLength(9);
});

import { oneProcess } from './one-process.ts';
import type { OneProcessOptions } from './one-process.ts';
import { chainsOf } from './published.ts';

const SECOND = 1_000;
/** Before all keys that the list begins with. */
const KEY = 1;

/** Orders that are polled, and swept once a day, with one record that changes as a test says. */
export function polledOrders(
  options: Pick<OneProcessOptions, 'datedFailure' | 'futureEnd'>,
  env: Readonly<Record<string, string>> = {},
) {
  const { process, lines, time, api, broker, registry, topic } = oneProcess({
    seed: 3,
    resource: 'orders',
    env: { PAGE_SIZE: '100', ...env },
    perMinute: 100,
    ...options,
  });
  const notes = () =>
    (chainsOf(broker.read(topic), registry).get(String(KEY)) ?? []).map((event) =>
      event === 'tombstone' ? undefined : event.record?.note,
    );
  let changes = 0;
  /** Time until a change is published, in ms; Infinity if it is not within `withinMs`. */
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
  return { process, time, api, lag, told };
}

import { describe, expect, it } from 'vitest';
import { StartLog } from '../../../src/streams/quota/start-log.ts';
import { overruns } from '../../account/ledger/overruns.ts';
import { mulberry32 } from '../../support/chance.ts';

const SERVER_MS = 60_000;
const HEADROOM_MS = 200;
const STARTS = 1_000;
const SEEDS = Array.from({ length: 20 }, (_, k) => k + 1);

/** A way to the server, or back, ms. */
const WAYS = {
  'quick or slow': (random: () => number) => (random() < 0.5 ? 10 : 900),
  'of any length': (random: () => number) => Math.floor(1_000 * random()),
} as const;

describe('StartLog', () => {
  describe.each(Object.entries(WAYS))('where each way is %s', (_, way) => {
    it.each([10, 15, 100])('lets no more than %i requests arrive in a window', (capacity) => {
      expect(SEEDS.flatMap((seed) => arrivals(capacity, way, seed))).toEqual([]);
    });
  });
});

/** Requests that start as soon as one counts no longer: windows with too many of them, as they come to the server. */
function arrivals(capacity: number, way: (random: () => number) => number, seed: number): string[] {
  const random = mulberry32(seed);
  const log = new StartLog(SERVER_MS + HEADROOM_MS);
  const arrived: { readonly at: number }[] = [];
  /** By their ends. */
  let underWay: { readonly end: number; readonly tell: ReturnType<typeof log.begin> }[] = [];
  let now = 0;
  const pass = (until: number): void => {
    now = until;
    for (const { end, tell } of underWay.filter((each) => each.end <= now)) tell(end, 'answered');
    underWay = underWay.filter((each) => each.end > now);
  };
  for (let k = 0; k < STARTS; k++) {
    while (log.used(now) >= capacity)
      pass(Math.min(log.freesAt(now), ...underWay.map(({ end }) => end)));
    const [there, back] = [way(random), way(random)];
    arrived.push({ at: now + there });
    underWay.push({ end: now + there + back, tell: log.begin(now) });
    underWay.sort((one, other) => one.end - other.end);
    pass(now + 1 + Math.floor(random() * 500));
  }
  return overruns(arrived, `seed ${seed}`, capacity, SERVER_MS);
}

import { finalize, Observable, switchMap } from 'rxjs';
import type { SchedulerLike, Subscription } from 'rxjs';

/** What the token bucket has to be held against: the same promises, by walking through all starts. */
export interface LinearLane {
  readonly during: <T>(work: Observable<T>) => Observable<T>;
}

interface Start {
  at: number;
  isUnderWay: boolean;
}

interface Lane {
  readonly rank: number;
  readonly line: ((start: Start) => void)[];
  readonly starts: ReturnType<typeof newestStarts>;
}

/** Counts every start from its end; the newest `capacity` starts are all it knows. */
export function linearBucket(options: {
  readonly capacity: number;
  readonly windowMs: number;
  readonly scheduler: SchedulerLike;
  readonly starts: readonly number[];
}) {
  const { capacity, windowMs, scheduler } = options;
  const all = newestStarts(capacity, windowMs);
  for (const at of options.starts)
    all.add({ at: Math.min(at, scheduler.now()), isUnderWay: false });
  const lanes: Lane[] = [];
  let wakeUp: Subscription | undefined;
  let draining = false;

  const drain = (): void => {
    wakeUp?.unsubscribe();
    draining = true;
    for (;;) {
      const now = scheduler.now();
      const waiting = lanes.filter(({ line }) => line.length > 0);
      const waits = waiting.map(({ starts }) => Math.max(all.wait(now), starts.wait(now)));
      const next = waiting[waits.findIndex((wait) => wait <= 0)];
      if (!next) {
        if (waits.length > 0) wakeUp = scheduler.schedule(drain, Math.min(...waits));
        break;
      }
      const start = { at: now, isUnderWay: true };
      all.add(start);
      next.starts.add(start);
      next.line.shift()!(start);
    }
    draining = false;
  };
  return {
    lane: (rank: number, share: number): LinearLane => {
      const lane: Lane = { rank, line: [], starts: newestStarts(share, windowMs) };
      lanes.push(lane);
      lanes.sort((a, b) => a.rank - b.rank);
      const token = new Observable<Start>((subscriber) => {
        lane.line.push((start) => {
          subscriber.next(start);
          subscriber.complete();
        });
        if (!draining) drain();
      });
      const ended = (start: Start) =>
        Object.assign(start, { at: scheduler.now(), isUnderWay: false });
      return {
        during: (work) => token.pipe(switchMap((start) => work.pipe(finalize(() => ended(start))))),
      };
    },
    exhaust: () => {
      for (let k = 0; k < capacity; k++) all.add({ at: scheduler.now(), isUnderWay: false });
    },
    used: () => all.used(scheduler.now()),
  };
}

function newestStarts(most: number, windowMs: number) {
  const starts: Start[] = [];
  const timeOf = ({ at, isUnderWay }: Start, now: number) => (isUnderWay ? now : at);
  const oldest = (now: number) =>
    starts.reduce(
      (place, start, k) => (timeOf(start, now) < timeOf(starts[place]!, now) ? k : place),
      0,
    );
  return {
    add: (start: Start) => {
      if (starts.length === most) starts.splice(oldest(Infinity), 1);
      starts.push(start);
    },
    wait: (now: number) =>
      starts.length < most ? 0 : timeOf(starts[oldest(now)]!, now) + windowMs - now,
    used: (now: number) => starts.filter((start) => timeOf(start, now) + windowMs > now).length,
  };
}

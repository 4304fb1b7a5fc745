import { VirtualTimeScheduler } from 'rxjs';
import type { SchedulerAction, SchedulerLike, Subscription } from 'rxjs';

/** The parts of rxjs' virtual scheduler that stepping through it needs. */
interface Steps {
  frame: number;
  readonly actions: {
    delay: number;
    state: unknown;
    execute(state: unknown, delay: number): unknown;
  }[];
}

/**
 * Virtual time for code that also awaits promises: after each timer all promises that can go on do,
 * before the next timer is due. The order is the same in every run.
 */
export class SimTime {
  readonly #virtual = new VirtualTimeScheduler();
  /** Number of jobs that {@link outside} is running. */
  #jobsOutside = 0;
  readonly scheduler: SchedulerLike;

  /** @param start of the clock, ms since the epoch. */
  constructor(start: number) {
    this.scheduler = {
      now: () => start + this.#virtual.frame,
      schedule: this.#virtual.schedule.bind(this.#virtual),
    };
  }

  now(): number {
    return this.scheduler.now();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.scheduler.schedule(() => resolve(), ms));
  }

  /**
   * Clock and timers of one process. What is due while it stands still comes when it goes on.
   *
   * @param heldUntil when it goes on, ms since the epoch: Infinity for a process that is dead.
   */
  timersOf(heldUntil: () => number): SchedulerLike {
    const { scheduler } = this;
    return {
      now: () => scheduler.now(),
      schedule: <T>(
        work: (this: SchedulerAction<T>, state?: T) => void,
        delay?: number,
        state?: T,
      ): Subscription => {
        const held = function (this: SchedulerAction<T>, given?: T): void {
          const wait = heldUntil() - scheduler.now();
          if (wait <= 0) work.call(this, given);
          else if (wait < Infinity) this.schedule(given, wait);
        };
        return scheduler.schedule(held, delay, state);
      },
    };
  }

  /** Lets time pass until something is true; the time after which it is not waited for any longer. */
  async until(isDone: () => boolean, atMost: number): Promise<void> {
    const steps = this.#virtual as unknown as Steps;
    await this.#settled();
    while (!isDone()) {
      const action = steps.actions.shift();
      if (!action) throw new Error('nothing is left to happen');
      steps.frame = action.delay;
      if (this.now() > atMost) throw new Error(`not done by ${new Date(atMost).toISOString()}`);
      const error = action.execute(action.state, action.delay);
      if (error) throw error as Error;
      await this.#settled();
    }
  }

  /** Lets time pass, ms. */
  async pass(ms: number): Promise<void> {
    let isOver = false;
    this.scheduler.schedule(() => (isOver = true), ms);
    await this.until(() => isOver, Infinity);
  }

  /** Runs a job that takes real time, such as compression on zlib's threads: the virtual clock does not move before the job has ended. */
  async outside<T>(job: () => Promise<T>): Promise<T> {
    this.#jobsOutside += 1;
    try {
      return await job();
    } finally {
      this.#jobsOutside -= 1;
    }
  }

  /** Resolves when no promise can go on. */
  async #settled(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve));
    while (this.#jobsOutside > 0);
  }
}

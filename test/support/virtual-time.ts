import { TestScheduler } from 'rxjs/testing';
import { expect } from 'vitest';

/** Marbles and timers in virtual time: `scheduler.run(...)`. */
export const virtualTime = (): TestScheduler =>
  new TestScheduler((actual, expected) => expect(actual).toEqual(expected));

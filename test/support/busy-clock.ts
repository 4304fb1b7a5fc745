import { LogicalClock } from '../../src/streams/http/logical-clock.ts';

/** By it every read may be beside others that are not settled: for spans that no read was made for. */
export const busyClock = (): LogicalClock =>
  Object.assign(new LogicalClock(), { overlaps: () => true });

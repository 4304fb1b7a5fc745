import type { FleetInstance } from './fleet-instance.ts';

/** What an instance says that it does. */
export interface FleetTold {
  readonly at: number;
  readonly instance: FleetInstance;
  readonly what: 'generation' | 'claim' | 'warm' | 'ask' | 'release' | 'drop' | 'stop' | 'failed';
  readonly account?: string;
  /** Of the generation that begins. */
  readonly number?: number;
  readonly error?: unknown;
  /** How much of the topic it has read by then: a place in `instance.log.read`. */
  readonly read: number;
}

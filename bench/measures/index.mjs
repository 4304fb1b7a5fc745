// @ts-check
// Every row, in the order of the table.
import { cpuNew } from './cpu-new.mjs';
import { eventLoop } from './event-loop.mjs';
import { throughput } from './throughput.mjs';
import { wire } from './wire.mjs';

/** @type {readonly import('../support/measure.mjs').Measure[]} */
export const MEASURES = [cpuNew, throughput, wire, eventLoop];

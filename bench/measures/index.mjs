// @ts-check
// Every row, in the order of the table.
import { cpuDescribed } from './cpu-described.mjs';
import { cpuNew } from './cpu-new.mjs';
import { cpuUnchanged } from './cpu-unchanged.mjs';
import { eventLoop } from './event-loop.mjs';
import { fleetRest } from './fleet-rest.mjs';
import { freshness } from './freshness.mjs';
import { freshnessBusy } from './freshness-busy.mjs';
import { freshnessFirstRead } from './freshness-snapshot.mjs';
import { growth } from './growth.mjs';
import { memory } from './memory.mjs';
import { platformatic } from './platformatic.mjs';
import { quota } from './quota.mjs';
import { rebuild } from './rebuild.mjs';
import { rest } from './rest.mjs';
import { restChanges } from './rest-changes.mjs';
import { restart } from './restart.mjs';
import { throughput } from './throughput.mjs';
import { wire } from './wire.mjs';

/** @type {readonly import('../support/measure.mjs').Measure[]} */
export const MEASURES = [
  quota,
  freshness,
  freshnessFirstRead,
  freshnessBusy,
  rest,
  restChanges,
  fleetRest,
  cpuUnchanged,
  cpuNew,
  cpuDescribed,
  throughput,
  memory,
  restart,
  rebuild,
  wire,
  eventLoop,
  growth,
  platformatic,
];

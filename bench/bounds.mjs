// @ts-check
// What a check holds figures against that miss their targets, or would at the short form's sizes, where
// code is still being compiled: what is beyond these has become worse, whatever the machine.

/** @type {import('./support/result.mjs').Bounds} */
export const BOUNDS = {
  rest: { cpu: { atMost: 8 }, ratio: { atMost: 10 } },
  'rest-changes': { cpu: { atMost: 9 } },
  'fleet-rest': { core: { atMost: 1 }, memory: { atMost: 16 } },
  'cpu-unchanged': {
    ratio: { atMost: 4 },
    changed: { atMost: 5.5 },
    membersCpu: { atMost: 35 },
  },
  'cpu-new': { ratio: { atMost: 4 } },
  throughput: { percent: { atLeast: 25 } },
  'event-loop': { p99: { atMost: 200 } },
};

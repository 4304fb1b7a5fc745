// @ts-check
import { setTimeout as delay } from 'node:timers/promises';
import { knowAMillion } from '../support/known-orders.mjs';
import { isPoll } from '../support/requests.mjs';
import { startService } from '../support/service.mjs';

/** How often it is looked whether the poll has come; it is told when it came, not when it was seen. */
const LOOK_EVERY_MS = 100;
const CHANGES_PER_SECOND = 50;
/** Of changes, before it is killed among them. */
const BUSY_MS = 5_000;

/**
 * From the start of the process to the first poll's arrival at the API, in seconds.
 *
 * @param {import('../support/sandbox.mjs').Sandbox} sandbox
 * @param {number} startedAt
 */
async function firstPoll(sandbox, startedAt) {
  for (;;) {
    const requests = await sandbox.call('requests', 'orders', startedAt);
    const poll = requests.find(isPoll);
    if (poll) return (poll.at - startedAt) / 1_000;
    if (requests.length > 0) throw new Error('the first request is no poll');
    await delay(LOOK_EVERY_MS);
  }
}

/** @type {import('../support/measure.mjs').Measure} */
export const restart = {
  name: 'restart',
  what: 'restart with a million images: time to the first poll, broker at its defaults',
  limit: '',
  form: 'full',
  figures: [
    { name: 'stopped', what: 'after SIGTERM', unit: 's', digits: 2, target: { atMost: 3 } },
    {
      name: 'killed',
      what: 'after SIGKILL among changes',
      unit: 's',
      digits: 2,
      target: { atMost: 3 },
    },
  ],
  run: async (context) => {
    const known = await context.once(knowAMillion);
    const scope = context.scope.inner();
    const { sandbox } = known;
    const start = () => startService(context, scope, known);
    try {
      const first = await start(); // it was stopped when it knew them
      const stopped = await firstPoll(sandbox, first.startedAt);
      await first.logged(({ event }) => event === 'ready');
      await sandbox.call('setRate', CHANGES_PER_SECOND);
      await delay(BUSY_MS);
      await first.end('SIGKILL');
      const second = await start();
      const killed = await firstPoll(sandbox, second.startedAt);
      await sandbox.call('setRate', 0);
      await second.end();
      return { stopped, killed };
    } finally {
      await scope.close();
    }
  },
};

// @ts-check
import { askedAgain } from '../support/asked-again.mjs';
import { withServiceAtRest } from '../support/at-rest.mjs';

/** @type {import('../support/measure.mjs').Measure} */
export const rest = {
  name: 'rest',
  what: 'six small lists at their full quota, nothing changing: CPU a minute',
  limit: 'undici alone: the same requests in the same time, and their answers to the end',
  form: 'full',
  figures: [
    { name: 'cpu', what: 'CPU a minute', unit: 's', digits: 2, target: { atMost: 2 } },
    { name: 'ratio', what: 'of the limit', unit: 'x', digits: 2, target: { atMost: 2 } },
    { name: 'limit', what: 'the limit', unit: 's', digits: 2 },
    { name: 'requests', what: 'requests a minute', unit: '' },
  ],
  run: (context) =>
    withServiceAtRest(
      context,
      { changesPerSecond: 0 },
      async ({ sandbox, cpu, requests, perMinute }) => {
        context.tell(`the limit: ${requests.length} requests by undici alone`);
        const alone = await askedAgain(context, sandbox, requests);
        context.keep('limit: undici', alone);
        const limit = (alone.cpu / requests.length) * perMinute;
        return { cpu, ratio: cpu / limit, limit, requests: perMinute };
      },
    ),
};

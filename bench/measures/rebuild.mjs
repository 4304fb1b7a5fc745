// @ts-check
import { cpSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { now } from '../support/clock.mjs';
import { firstRead } from '../support/first-read.mjs';
import { knowAMillion } from '../support/known-orders.mjs';
import { plainRead } from '../support/plain-read.mjs';
import { startService, stateFolder } from '../support/service.mjs';

const LOOK_EVERY_MS = 10;
/** Of `stat`. */
const BLOCK_BYTES = 512;
/** An empty store takes less, and a few hundred images more. */
const FIRST_IMAGES_BYTES = 300_000;

/**
 * When the first images are written: before that the reader finds its place, and that takes as long
 * however many there are.
 *
 * @param {string} state
 */
async function firstImages(state) {
  const file = join(state, 'images.mdb');
  const bytes = () => statSync(file).blocks * BLOCK_BYTES;
  while (bytes() < FIRST_IMAGES_BYTES) await delay(LOOK_EVERY_MS);
  return now();
}

/** @type {import('../support/measure.mjs').Measure} */
export const rebuild = {
  name: 'rebuild',
  what: 'images rebuilt from the topic',
  limit: 'plain kafkajs reading the topic without decoding',
  form: 'full',
  figures: [
    { name: 'percent', what: 'of the limit', unit: '%', target: { atLeast: 50 } },
    { name: 'rate', what: 'images a second', unit: '' },
    { name: 'limit', what: 'the limit', unit: '' },
  ],
  run: async (context) => {
    // In the short form those that another row has read anyway.
    const known = context.isShort
      ? (await context.once(firstRead)).known
      : await context.once(knowAMillion);
    const scope = context.scope.inner();
    const { sandbox, prefix, settings } = known;
    try {
      const plain = await plainRead(context, `${prefix}.orders`);
      // All but the images: without the times of its requests the service would wait for a minute first.
      const state = stateFolder(scope);
      cpSync(known.state, state, {
        recursive: true,
        filter: (path) => !basename(path).startsWith('images.'),
      });
      const service = await startService(context, scope, { sandbox, prefix, state, settings });
      await service.logged(({ event }) => event === 'schema');
      const began = await firstImages(state);
      const line = await service.logged(({ event }) => event === 'restored');
      await service.end();
      const rate = Number(line.images) / ((line.at - began) / 1_000);
      return { percent: (100 * rate) / plain.perSecond, rate, limit: plain.perSecond };
    } finally {
      await scope.close();
    }
  },
};

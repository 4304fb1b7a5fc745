import { expect, it } from 'vitest';
import { freeLoopbackPorts } from '../../src/devstack/loopback-ports.ts';
import { runToEnd } from './run-to-end.ts';

it.each([
  '02-shipping-notifier.mjs',
  '03-revenue.mjs',
  '04-search-index.mjs',
  '05-plain-kafkajs.mjs',
])('%s asks for the demo where no Kafka answers', { timeout: 60_000 }, async (file) => {
  const [port] = await freeLoopbackPorts(1);
  const { code, stdout, stderr } = await runToEnd(file, { KAFKA_BROKERS: `127.0.0.1:${port!}` });
  expect([code, stdout, stderr]).toEqual([
    1,
    '',
    `no Kafka at 127.0.0.1:${port!}: start the demo first, in another terminal (npm start)\n`,
  ]);
});

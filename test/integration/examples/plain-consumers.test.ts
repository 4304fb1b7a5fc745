import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from '../support/service.ts';
import { runExample } from './run-example.ts';

const ORDERS = 30;

/** Another one's path, that of a virtual environment, may be given. */
const PYTHON = process.env.PYTHON ?? 'python3';
const missing = whatIsMissing();
if (missing) console.warn(`SKIPPED: examples/06-python, as ${PYTHON} can't run it: ${missing}`);

it('05-plain-kafkajs prints each change of an order', { timeout: 60_000 }, () =>
  printsChanges('05-plain-kafkajs.mjs', process.execPath, 'example-05'),
);

it.skipIf(missing)('06-python prints each change of an order', { timeout: 60_000 }, () =>
  printsChanges('06-python/consumer.py', PYTHON, 'example-06'),
);

async function printsChanges(file: string, program: string, prefix: string): Promise<void> {
  const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
  const service = cliForTest(['run'], {
    ...settings(sandbox, prefix, folderForTest()),
    POLL_INTERVAL_MS: '100',
    SWEEP_INTERVAL_MS: '200',
  });
  await firstReadDone(service);
  const consumer = runExample(file, prefix, { program });
  await consumer.until((lines) => lines.length >= ORDERS);
  expect(consumer.lines).toHaveLength(ORDERS);
  const [key] = sandbox.truth.keys('orders');
  const { payment_status, total_price } = sandbox.truth.get('orders', key!) as Facts;
  expect(consumer.lines).toContain(`${key} r - -> ${payment_status} ${total_price.toFixed(2)} `);

  const from = ORDERS;
  sandbox.change('orders', key!, { payment_status: 'voided', total_price: -7.5 });
  const changed = await consumer.until((lines) => lines[from]);
  const paths = 'payment_status,total_price,updated_at';
  expect(changed).toBe(`${key} u ${payment_status} -> voided -7.50 ${paths}`);

  sandbox.remove('orders', key!);
  await consumer.until((lines) => lines.length === from + 3);
  expect(consumer.lines.slice(from + 1)).toEqual([
    `${key} d voided -> - -7.50 `,
    `${key} tombstone`,
  ]);
  expect(await consumer.end('SIGTERM')).toBe(0);
}

type Facts = {
  readonly payment_status: string;
  readonly total_price: number;
};

/** Python or its package, in its own words; undefined when both are there. */
function whatIsMissing(): string | undefined {
  const args = ['-c', 'import confluent_kafka.schema_registry.avro'];
  const { error, status, stderr } = spawnSync(PYTHON, args, { encoding: 'utf8' });
  if (error) return error.message;
  return status === 0 ? undefined : stderr.trim().split('\n').at(-1);
}

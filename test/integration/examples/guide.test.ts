import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { namedProgram } from '../../docs/code-blocks.ts';
import {
  cliForTest,
  firstReadDone,
  folderForTest,
  sandboxForTest,
  settings,
} from '../support/service.ts';
import { runProgram } from './run-example.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** A program of a guide in a project of its own, which has the packages that the guide installs. */
function project(guide: string, name: string): string {
  const folder = folderForTest();
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(ROOT, join(folder, 'node_modules', 'cellarstream'));
  for (const name of ['kafkajs', 'rxjs']) {
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name));
  }
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  const file = join(folder, `${name}.js`);
  writeFileSync(file, namedProgram(guide, name).code);
  return file;
}

it('the programs of the consumer guides do what they say', { timeout: 100_000 }, async () => {
  const sandbox = await sandboxForTest({ records: { orders: 30 } });
  const service = cliForTest(['run'], {
    ...settings(sandbox, 'guide', folderForTest()),
    POLL_INTERVAL_MS: '100',
  });
  await firstReadDone(service);

  const shipping = project('docs/first-consumer.md', 'shipping');
  const first = runProgram(shipping, 'guide');
  const ship = () => {
    const order = String(sandbox.create('orders', { delivery_preference: 'Ship' }));
    const id = `F-${order}-1`;
    const fulfillment_info = [{ fulfillment_id: id, shipment_status: 'in_transit' }];
    sandbox.change('orders', order, { fulfillment_info });
    return `order ${order}: parcel ${id} is on its way`;
  };
  const parcels = [ship(), ship(), ship()];
  await first.until((lines) => parcels.every((line) => lines.includes(line)));
  expect(await first.end('SIGINT')).toBe(0);

  const later = ship();
  const second = runProgram(shipping, 'guide');
  await second.until((lines) => lines.includes(later));
  expect(second.lines).toEqual([later]); // it goes on behind what it has handled
  expect(await second.end('SIGINT')).toBe(0);

  const today = runProgram(project('docs/consumers.md', 'today'), 'guide');
  expect(await today.ended).toBe(0);
  expect(today.lines).toEqual([expect.stringMatching(/^orders today: \d+ new, \d+ changes$/)]);
});

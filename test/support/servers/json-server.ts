import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { freeLoopbackPorts } from '../../../src/devstack/loopback-ports.ts';
import { byKey, jsonBody, startProgram, succeed } from './api-server.ts';
import type { ApiServer, ServedList, ServedRecord } from './api-server.ts';

const PROGRAM = createRequire(import.meta.url).resolve('json-server/lib/cli/bin.js');
const STATES = ['new', 'paid', 'packed', 'sent'];

/**
 * Starts json-server with the two lists of examples/apis/json-server.yaml: `wines` has no stamps, `orders` has the time of each change in
 * `updated_at`. Keys are not used twice, as json-server itself would after the record with the greatest id is deleted.
 */
export async function startJsonServer(): Promise<ApiServer> {
  const [port] = await freeLoopbackPorts(1);
  const url = `http://127.0.0.1:${port}`;
  const stop = await startProgram({
    name: 'json-server',
    command: process.execPath,
    args: [PROGRAM, '--host', '127.0.0.1', '--port', String(port), '--quiet', 'db.json'],
    isUpAt: `${url}/db`,
    prepare: (folder) =>
      writeFileSync(join(folder, 'db.json'), JSON.stringify({ wines: [], orders: [] })),
  });
  const list = (name: string, fields: (number: number) => object): ServedList => ({
    name,
    insert: async (number) => {
      await succeed(`${url}/${name}`, jsonBody('POST', { id: number, ...fields(number) }));
      return String(number);
    },
    change: async (key, number) => {
      await succeed(`${url}/${name}/${key}`, jsonBody('PATCH', fields(number)));
    },
    remove: async (key) => {
      await succeed(`${url}/${name}/${key}`, { method: 'DELETE' });
    },
    truth: async () => {
      const database = (await (await succeed(`${url}/db`)).json()) as Record<string, unknown>;
      return byKey(database[name] as ServedRecord[]);
    },
  });
  return {
    url,
    stop,
    lists: [
      list('wines', (number) => ({ name: `wine ${number}`, stock: number % 50, revision: number })),
      list('orders', (number) => ({
        status: STATES[number % STATES.length],
        revision: number,
        updated_at: new Date().toISOString(),
      })),
    ],
  };
}

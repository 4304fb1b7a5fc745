import { freeLoopbackPorts } from '../../../src/devstack/loopback-ports.ts';
import { cached } from '../../ecosystem/cache.ts';
import { byKey, startProgram, succeed } from './api-server.ts';
import type { ApiServer, ServedList, ServedRecord } from './api-server.ts';

const VERSION = '1.15.10';
export const STRIPE_KEY = 'sk_test_of_the_tests';

/** Runs the program as it is, with its socket on the loopback: it has no option for that. */
const ON_LOOPBACK = `
import runpy, socket
bind = socket.socket.bind
socket.socket.bind = lambda self, address: bind(self, ('::ffff:127.0.0.1', *address[1:]))
runpy.run_module('localstripe', run_name='__main__')
`;

/**
 * Starts localstripe, which pip installs into a folder of its own once. Its list `customers` is in the order of insertion, and it answers
 * `starting_after` with an id that is not there by the first page of the list.
 */
export async function startLocalstripe(): Promise<ApiServer> {
  const python = process.env.PYTHON ?? 'python3';
  const packages = cached(`localstripe-${VERSION}`, (to) => [
    ...[python, '-m', 'pip', 'install', '--quiet', '--target', to, `localstripe==${VERSION}`],
  ]);
  const [port] = await freeLoopbackPorts(1);
  const url = `http://127.0.0.1:${port}`;
  const stop = await startProgram({
    name: 'localstripe',
    command: python,
    args: ['-c', ON_LOOPBACK, '--port', String(port), '--from-scratch'],
    env: { PYTHONPATH: packages },
    isUpAt: `${url}/v1/customers`,
  });
  const headers = { authorization: `Bearer ${STRIPE_KEY}` };
  const customers = `${url}/v1/customers`;
  const send = async (address: string, fields: Record<string, string>) => {
    const body = new URLSearchParams(fields);
    return (await succeed(address, { method: 'POST', headers, body })).json();
  };
  const list: ServedList = {
    name: 'customers',
    insert: async (number) => {
      const made = (await send(customers, { name: `customer ${number}` })) as ServedRecord;
      return String(made.id);
    },
    change: async (key, number) => {
      await send(`${customers}/${key}`, { description: `revision ${number}` });
    },
    remove: async (key) => {
      await succeed(`${customers}/${key}`, { method: 'DELETE', headers });
    },
    // It has no greatest page size: one response is the whole list.
    truth: async () => {
      const all = await (await succeed(`${customers}?limit=1000000`, { headers })).json();
      return byKey((all as { data: ServedRecord[] }).data);
    },
  };
  return { url, stop, lists: [list] };
}

// Free ports of 127.0.0.1.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Ports below those that systems give to outgoing connections (from 32768 on Linux). A client that
 * tries again and again to reach a broker that is down would else, now and then, be given the very
 * port it is calling: it connects to itself, and the broker can't come back.
 */
const LOWEST = 20_000;
const HIGHEST = 32_000;

/**
 * Ports of 127.0.0.1 that nobody listens on now, all different.
 *
 * @param preferred Taken first, those of them that are free. Default none.
 */
export async function freeLoopbackPorts(
  count: number,
  preferred: readonly number[] = [],
): Promise<number[]> {
  const ports = new Set<number>();
  for (const port of preferred.slice(0, count)) if (await isFree(port)) ports.add(port);
  while (ports.size < count) {
    const port = randomInt(LOWEST, HIGHEST);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

/** Whether nobody listens on a port of 127.0.0.1 now. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
    throw error;
  }
  server.close();
  await once(server, 'close');
  return true;
}

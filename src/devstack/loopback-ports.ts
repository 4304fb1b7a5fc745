// Finds free ports of 127.0.0.1.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Lowest port that is chosen at random for a server. */
const LOWEST = 20_000;
/**
 * Upper bound, exclusive, of the ports that are chosen at random. The ephemeral ports (from 32768 on Linux) are above it, so that no client
 * connection is assigned the port of a stopped broker.
 */
const HIGHEST = 32_000;

/** Returns `count` distinct ports of 127.0.0.1 that are free at this moment: first the free ones of `preferred`, then random ones. */
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

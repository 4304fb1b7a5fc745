import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { freeLoopbackPorts } from '../../src/services/loopback-ports.ts';

it('gives different ports that can be listened on, below those of outgoing connections', async () => {
  const ports = await freeLoopbackPorts(20);
  expect(new Set(ports).size).toBe(20);
  for (const port of ports) {
    expect(port).toBeLessThan(32_768);
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
  }
});

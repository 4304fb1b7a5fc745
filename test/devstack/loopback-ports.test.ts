import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { freeLoopbackPorts } from '../../src/devstack/loopback-ports.ts';

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

it('gives the preferred ports first, those that nobody listens on', async () => {
  const [taken, free] = await freeLoopbackPorts(2);
  const server = createServer().listen(taken, '127.0.0.1');
  await once(server, 'listening');
  const ports = await freeLoopbackPorts(3, [taken!, free!]);
  expect(ports[0]).toBe(free);
  expect(new Set([...ports, taken]).size).toBe(4);
  expect(await freeLoopbackPorts(1, [free!, taken!])).toEqual([free]);
  server.close();
  await once(server, 'close');
});

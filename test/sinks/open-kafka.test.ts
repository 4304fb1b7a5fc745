import net from 'node:net';
import tls from 'node:tls';
import { expect, it, onTestFinished, vi } from 'vitest';
import { brokerSocket } from '../../src/sinks/open-kafka.ts';

it.each([
  ['plain', net, undefined],
  ['TLS', tls, {}],
])('gives each address of a broker seconds (%s)', (_, module, ssl) => {
  const connect = vi.spyOn(module as typeof net, 'connect');
  onTestFinished(() => connect.mockRestore());
  const args = { host: 'localhost', port: 1, onConnect: () => undefined };
  const socket = brokerSocket({ ...args, ssl: ssl as tls.ConnectionOptions });
  socket.on('error', () => undefined).destroy();
  expect(connect.mock.calls[0]![0]).toMatchObject({
    host: 'localhost',
    port: 1,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 2_500,
    ...(ssl && { servername: 'localhost' }),
  });
});

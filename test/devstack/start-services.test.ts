import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { describeError } from '../../src/core/errors.ts';
import { startServices } from '../../src/devstack/start-services.ts';

/** A Docker engine that answers and can pull no image, on a socket. */
const REASON = 'Get "https://registry-1.docker.io/v2/": dial tcp: no such host';
const scratch = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
const socket = join(scratch, 'docker.sock');
const engine = createServer((request, response) => {
  const path = request.url?.replace(/^\/v[\d.]+/, '').split('?')[0];
  const info = { ServerVersion: '28.2.2', OperatingSystem: 'Debian', OSType: 'linux', Labels: [] };
  const answers: Record<string, [number, unknown]> = {
    '/info': [200, info],
    '/networks/bridge': [200, { IPAM: { Config: [{ Gateway: '127.0.0.1' }] } }],
    '/images/create': [500, { message: REASON }],
  };
  const [status, body] = answers[path ?? ''] ?? [404, { message: 'no such image' }];
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
});

beforeAll(async () => {
  await new Promise<void>((resolve) => engine.listen(socket, resolve));
  vi.stubEnv('DOCKER_HOST', `unix://${socket}`);
});
afterAll(() => {
  vi.unstubAllEnvs();
  engine.close();
  rmSync(scratch, { recursive: true });
});

/** Neither Java nor Maven. */
const nothing = { PATH: '' };
const cacheDir = join(scratch, 'cache');
const UNPULLABLE = `Docker could not start apache/kafka:4.1.1: (HTTP code 500) server error - ${REASON}`;

it('tries Java where an image cannot be pulled, and says which and why', async () => {
  const onFallback = vi.fn();
  const starting = startServices({ env: nothing, cacheDir, onFallback });
  await expect(starting).rejects.toMatchObject({
    code: 'SERVICES',
    message: expect.stringContaining(`(${UNPULLABLE}; no working java on the PATH`),
  });
  expect(onFallback.mock.calls).toEqual([[UNPULLABLE]]);
});

it('ends with that reason where SERVICES is docker', async () => {
  const starting = startServices({ env: { ...nothing, SERVICES: 'docker' }, cacheDir });
  const error = await starting.catch((error: unknown) => error);
  expect(describeError(error)).toBe(UNPULLABLE);
});

it('does not look for Docker where SERVICES is java', async () => {
  await expect(
    startServices({ env: { ...nothing, SERVICES: 'java' }, cacheDir }),
  ).rejects.toMatchObject({
    message: expect.stringContaining('(no working java on the PATH'),
  });
});

it('refuses another value of SERVICES', async () => {
  await expect(startServices({ env: { SERVICES: 'podman' } })).rejects.toMatchObject({
    code: 'SETTINGS',
    message: 'SERVICES is "podman": set it to docker or java, or leave it unset',
  });
});

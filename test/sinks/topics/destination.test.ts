import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { openKafkaClients } from '../../../src/sinks/open-kafka.ts';
import { openDestination } from '../../../src/sinks/topics/destination.ts';
import { CellarstreamError, describeError } from '../../../src/core/errors.ts';
import type { Registry } from '../../../src/schemas/registry/registry.ts';
import { serve } from '../../support/http-server.ts';

const QUIET = () => () => undefined;

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** What comes of the first look at a Kafka that is not there. */
async function opened(registryUrl: string, registry?: Registry) {
  const env = {
    KAFKA_BROKERS: `127.0.0.1:${await closedPort()}`,
    SCHEMA_REGISTRY_URL: registryUrl,
  };
  const config = loadConfig({ env, cwd: '/', needs: ['kafka', 'registry'] });
  const links = openKafkaClients(config, { log: QUIET });
  const given = { ...links, ...(registry && { registry }) };
  const error = await openDestination(config, given).catch((error: unknown) => error);
  await links.registry.close();
  return { code: error instanceof CellarstreamError && error.code, line: describeError(error) };
}

it('looks at the registry before it makes any topic: an address without its path was known after ten', async () => {
  const server = await serve((_, response) => response.writeHead(404).end('<html>'));
  const { code, line } = await opened(server.url.href);
  await server.close();
  expect(code).toBe('REGISTRY_REFUSED');
  expect(line).toContain('SCHEMA_REGISTRY_URL');
  expect(line).toContain('/apis/ccompat/v7');
});

it('says within two seconds that Kafka is not there, and which setting says where it is', async () => {
  const latest = () => Promise.resolve(undefined);
  const registry = { latest } as Partial<Registry> as Registry;
  const began = performance.now();
  const { code, line } = await opened('http://127.0.0.1:1', registry);
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(code).toBe('KAFKA_UNREACHABLE');
  expect(line).toMatch(/^no answer from Kafka \(.*KAFKA_BROKERS.*\): .*ECONNREFUSED/);
});

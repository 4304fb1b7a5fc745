import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { lastValueFrom } from 'rxjs';
import { beforeEach, expect, it, onTestFinished, vi } from 'vitest';
import { WINE } from '../../src/description/wine/wine.ts';
import { openApi } from '../../src/account/api.ts';
import { steadyScheduler } from '../../src/core/clock.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { openKafkaClients } from '../../src/sinks/open-kafka.ts';
import { kafkaError } from '../../src/kafka/client/kafka-error.ts';
import { selfSigned } from '../support/certificates.ts';

const QUIET = () => () => undefined;

let address: string;
beforeEach(async () => {
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  const server = createServer(selfSigned(), (_, response) => response.end('{}'));
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  onTestFinished(() => {
    vi.unstubAllEnvs();
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});

const settings = () =>
  loadConfig({
    env: {
      API_BASE_URL: `https://${address}`,
      API_KEY: 'a key',
      KAFKA_BROKERS: address,
      KAFKA_SSL: 'true',
      SCHEMA_REGISTRY_URL: `https://${address}`,
    },
    cwd: import.meta.dirname,
    needs: ['api', 'kafka', 'registry'],
  });
const REFUSED = { code: 'TLS_REFUSED' };

it("no environment of Node's turns certificates' checks off: the API", async () => {
  const options = { loginLimit: <T>(source: T) => source, scheduler: steadyScheduler };
  const api = openApi({ config: settings().api, description: WINE, ...options });
  await expect(lastValueFrom(api.tokens.token$)).rejects.toMatchObject(REFUSED);
  await api.close();
});

it('nor that of the registry', async () => {
  const { registry } = openKafkaClients(settings(), { log: QUIET });
  await expect(registry.latest('a subject')).rejects.toMatchObject(REFUSED);
  await registry.close();
});

it("nor that of Kafka's brokers", async () => {
  const { kafka, registry } = openKafkaClients(settings(), { log: QUIET, kafkaRetries: 0 });
  const admin = kafka.admin();
  const error: unknown = await admin.connect().catch(kafkaError);
  expect(error).toMatchObject(REFUSED);
  await Promise.all([admin.disconnect(), registry.close()]);
});

import { KafkaProxy } from '../../support/proxy/kafka-proxy.ts';
import { TcpProxy } from '../../support/proxy/tcp-proxy.ts';
import type { TestFleet } from './fleet.ts';
import { atEnd } from './running-test.ts';
import type { Env } from './service.ts';

/** What is between one instance and all others, so that it can be cut off alone. */
export interface Between {
  readonly toKafka: KafkaProxy;
  readonly toApi: TcpProxy;
  /** When the instance has sent anything to the API, ms since the epoch, oldest first. */
  readonly sent: readonly number[];
  /** What the instance is told of them. */
  readonly env: Env;
}

/** Proxies for an instance of a fleet on one broker. */
export async function between({ brokers, apiUrl }: TestFleet): Promise<Between> {
  const toKafka = await KafkaProxy.listen(brokers[0]!);
  const { hostname, port } = new URL(apiUrl);
  const sent: number[] = [];
  const toApi = await TcpProxy.listen({
    target: { host: hostname, port: Number(port) },
    tap: (connection) => ({
      fromClient: (bytes) => {
        sent.push(Date.now());
        connection.toTarget(bytes);
      },
      fromTarget: (bytes) => connection.toClient(bytes),
    }),
  });
  atEnd(() => Promise.all([toKafka.close(), toApi.close()]));
  const env = { KAFKA_BROKERS: toKafka.address, API_BASE_URL: `http://${toApi.address}` };
  return { toKafka, toApi, sent, env };
}

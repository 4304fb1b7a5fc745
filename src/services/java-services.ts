import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cachedJars } from './jar-cache.ts';
import { JavaServer } from './java-server.ts';
import { kafkaServer, listenersOf } from './kafka-server.ts';
import { registryServer, registryUrlOf } from './registry-server.ts';
import type { JavaServices, LaunchOptions } from './services.ts';
import { Tethered } from './tethered.ts';

const READY_TIMEOUT_MS = 60_000;

/**
 * The real Kafka and Apicurio Registry as JVMs on ports of 127.0.0.1, with their data in a new
 * temporary folder.
 *
 * @param java The program to run, Java 17 or newer.
 * @throws CellarstreamError `SERVICES` when the jars can't be had or a server does not come up.
 */
export async function startOnJava(
  java: string,
  options: LaunchOptions = {},
): Promise<JavaServices> {
  const jars = await cachedJars(options);
  const env = options.env ?? process.env;
  const ports = options.ports && {
    kafka: [options.ports.kafka],
    registry: [options.ports.registry],
  };
  const timeoutMs = options.readyTimeoutMs ?? READY_TIMEOUT_MS;
  options.onProgress?.('starting Kafka and the schema registry');

  const tethered = await Tethered.start(join(tmpdir(), 'cellarstream-services-'), env);
  try {
    const kafkaKind = kafkaServer(jars.kafka, java, tethered, options);
    const registryKind = registryServer(jars.registry, jars.registryVersion, tethered);
    const [kafka, registry] = await Promise.all([
      JavaServer.start(kafkaKind, java, tethered, timeoutMs, ports?.kafka),
      JavaServer.start(registryKind, java, tethered, timeoutMs, ports?.registry),
    ]);
    return {
      origin: 'java',
      listeners: listenersOf(options, kafka.ports),
      brokers: [`127.0.0.1:${kafka.ports[0]!}`],
      registryUrl: registryUrlOf('127.0.0.1', registry.ports[0]!),
      kafka,
      registry,
      stop: () => tethered.end(),
    };
  } catch (error) {
    await tethered.end();
    throw error;
  }
}

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { archiveClasses } from './class-archives.ts';
import { cachedJars } from './jar-cache.ts';
import { JavaServer } from './java-server.ts';
import { startKafka } from './kafka-nodes.ts';
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
  const env = options.env ?? process.env;
  const registryPort = options.ports && [options.ports.registry];
  const timeoutMs = options.readyTimeoutMs ?? READY_TIMEOUT_MS;
  const jars = await cachedJars(options);
  await archiveClasses(jars, java, timeoutMs, options);
  options.onProgress?.('starting Kafka and the schema registry');

  const tethered = await Tethered.start(join(tmpdir(), 'cellarstream-services-'), env);
  try {
    const registryKind = registryServer(jars.registry, jars.registryVersion, tethered);
    const [{ nodes, listeners }, registry] = await Promise.all([
      startKafka(jars.kafka, java, tethered, timeoutMs, options),
      JavaServer.start(registryKind, java, tethered, timeoutMs, registryPort),
    ]);
    return {
      origin: 'java',
      listeners,
      brokers: nodes.map(({ address }) => address),
      registryUrl: registryUrlOf('127.0.0.1', registry.ports[0]!),
      kafka: nodes[0]!,
      nodes,
      registry,
      stop: () => tethered.end(),
    };
  } catch (error) {
    await tethered.end();
    throw error;
  }
}

// Kafka and the registry as JVMs, with class archives that make later starts faster.

import { tmpdir } from 'node:os';
import { join, basename, dirname } from 'node:path';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { cachedJars, classArchive, installFolder, versionText, type Jars } from './jar-cache.ts';
import { JavaServer, type JvmLaunch } from './java-server.ts';
import { startKafka } from './kafka-server.ts';
import { registryServer, registryUrlOf } from './registry-server.ts';
import type { JavaServices, LaunchOptions } from './services.ts';
import { Tethered } from './tethered.ts';
import { describeError } from '../core/errors.ts';

/** Default time that a Java server has from its start to its first response, in ms. If it is too small, slow starts fail. */
const READY_TIMEOUT_MS = 60_000;

/**
 * Starts the real Kafka and Apicurio Registry as JVMs on ports of 127.0.0.1, with their data in a new temporary folder.
 *
 * @param java Path of the `java` program, version 17 or newer.
 * @throws CellarstreamError `SERVICES` if the jars cannot be downloaded or a server does not start.
 */
export async function startOnJava(
  java: string,
  options: LaunchOptions = {},
): Promise<JavaServices> {
  const env = options.env ?? process.env;
  const registryPort = options.ports && [options.ports.registry];
  const readyTimeoutMs = options.readyTimeoutMs ?? READY_TIMEOUT_MS;
  const jars = await cachedJars(options);
  await archiveClasses(jars, java, readyTimeoutMs, options);
  options.onProgress?.('starting Kafka and the schema registry');

  const tethered = await Tethered.start(join(tmpdir(), 'cellarstream-services-'), env);
  const jvm = { java, tethered, readyTimeoutMs };
  try {
    const registryKind = registryServer(jars.registry, jars.registryVersion, tethered);
    const [{ nodes, listeners }, registry] = await Promise.all([
      startKafka(jars.kafka, jvm, options),
      JavaServer.start(registryKind, jvm, registryPort),
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

/** Name of a file in the folder of the class archives. It has the output of `java -version` of the JVM that created these archives. */
const MADE_BY = 'java-version.txt';

/**
 * Creates the class archives (JEP 350) of Kafka and the registry, which halve their start times, if there are none of this Java version.
 * To create them, both servers are started and stopped once. A failure is only reported to `options.onProgress`.
 */
async function archiveClasses(
  jars: Jars,
  java: string,
  readyTimeoutMs: number,
  options: LaunchOptions,
): Promise<void> {
  const folder = dirname(classArchive(jars.kafka));
  const version = (await versionText(java, '-version', options.env ?? process.env)) ?? '';
  const isCurrent = (place: string) =>
    readFile(join(place, MADE_BY), 'utf8').then(
      (madeBy) => madeBy === version,
      () => false, // no archives exist
    );
  if (await isCurrent(folder)) return;
  options.onProgress?.('preparing Kafka and the schema registry for faster starts (only once)');
  try {
    const tethered = await Tethered.start(`${folder}.partial-`, options.env ?? process.env);
    try {
      const archives = join(tethered.folder, 'classes');
      await mkdir(archives);
      // Archives of another Java version must not be in use while new ones are written.
      await rename(folder, join(tethered.folder, 'former')).catch(() => undefined); // fails if there are none
      await startAndStop(jars, { java, tethered, readyTimeoutMs }, archives);
      await writeFile(join(archives, MADE_BY), version);
      await installFolder(archives, folder, tethered.folder, isCurrent);
    } finally {
      await tethered.end();
    }
  } catch (error) {
    options.onProgress?.(`no faster starts: ${describeError(error)}`);
  }
}

/** Starts and stops Kafka and the registry. As they stop, each writes its class archive (JEP 350) to the folder `archives`. */
async function startAndStop(jars: Jars, jvm: JvmLaunch, archives: string): Promise<void> {
  const dumpInto = (server: string) => [
    `-XX:ArchiveClassesAtExit=${join(archives, basename(classArchive(server)))}`,
  ];
  const kafka = { javaOptions: dumpInto(jars.kafka) };
  const { registry, registryVersion } = jars;
  const registryKind = registryServer(registry, registryVersion, jvm.tethered, dumpInto(registry));
  const [{ nodes }, server] = await Promise.all([
    startKafka(jars.kafka, jvm, { kafka }),
    JavaServer.start(registryKind, jvm),
  ]);
  await Promise.all([...nodes, server].map((each) => each.stop()));
}

// Kafka and the registry as JVMs, with archives of their classes that make later starts faster.

import { tmpdir } from 'node:os';
import { join, basename, dirname } from 'node:path';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { cachedJars, classArchive, putInPlace, versionText } from './jar-cache.ts';
import { JavaServer } from './java-server.ts';
import { startKafka } from './kafka-server.ts';
import { registryServer, registryUrlOf } from './registry-server.ts';
import type { JavaServices, LaunchOptions } from './services.ts';
import { Tethered } from './tethered.ts';
import { describeError } from '../core/errors.ts';
import type { Jars } from './jar-cache.ts';

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

/** Name of the file with the output of `java -version` of the JVM that made the archives. */
const MADE_BY = 'java-version.txt';

/**
 * Creates the archives of classes (JEP 350) with which both servers start in half the time, by starting and stopping both once: about ten seconds.
 * Does nothing if there are archives of this version of Java, or if it has left none when it was asked to. An error is reported as progress: the
 * servers start without archives.
 */
async function archiveClasses(
  jars: Jars,
  java: string,
  timeoutMs: number,
  options: LaunchOptions,
): Promise<void> {
  const folder = dirname(classArchive(jars.kafka));
  const version = (await versionText(java, '-version', options.env ?? process.env)) ?? '';
  const isCurrent = (place: string) =>
    readFile(join(place, MADE_BY), 'utf8').then(
      (madeBy) => madeBy === version,
      () => false, // there are none
    );
  if (await isCurrent(folder)) return;
  options.onProgress?.('preparing faster starts of both servers, once');
  try {
    const tethered = await Tethered.start(`${folder}.partial-`, options.env ?? process.env);
    try {
      const archives = join(tethered.folder, 'classes');
      await mkdir(archives);
      // Those of another version of Java must not be in use while new ones are written.
      await rename(folder, join(tethered.folder, 'former')).catch(() => undefined); // or there are none
      await startAndStop(jars, java, tethered, timeoutMs, archives);
      await writeFile(join(archives, MADE_BY), version);
      await putInPlace(archives, folder, tethered.folder, isCurrent);
    } finally {
      await tethered.end();
    }
  } catch (error) {
    options.onProgress?.(`no faster starts: ${describeError(error)}`);
  }
}

/** Starts both servers as JVMs that write an archive of the classes that they have loaded as they end. */
async function startAndStop(
  jars: Jars,
  java: string,
  tethered: Tethered,
  timeoutMs: number,
  archives: string,
): Promise<void> {
  const dumpInto = (server: string) => [
    `-XX:ArchiveClassesAtExit=${join(archives, basename(classArchive(server)))}`,
  ];
  const kafka = { javaOptions: dumpInto(jars.kafka) };
  const { registry, registryVersion } = jars;
  const registryKind = registryServer(registry, registryVersion, tethered, dumpInto(registry));
  const [{ nodes }, server] = await Promise.all([
    startKafka(jars.kafka, java, tethered, timeoutMs, { kafka }),
    JavaServer.start(registryKind, java, tethered, timeoutMs),
  ]);
  await Promise.all([...nodes, server].map((each) => each.stop()));
}

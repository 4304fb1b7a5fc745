import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describeError } from '../core/errors.ts';
import { classArchive, putInPlace } from './jar-cache.ts';
import type { Jars } from './jar-cache.ts';
import { JavaServer } from './java-server.ts';
import { versionText } from './java-tools.ts';
import { startKafka } from './kafka-nodes.ts';
import { registryServer } from './registry-server.ts';
import type { LaunchOptions } from './services.ts';
import { Tethered } from './tethered.ts';

/** Name of the file with the output of `java -version` of the JVM that made the archives. */
const MADE_BY = 'java-version.txt';

/**
 * Creates the archives of classes (JEP 350) with which both servers start in half the time, by starting and stopping both once: about ten seconds.
 * Does nothing if there are archives of this version of Java, or if it has left none when it was asked to. An error is reported as progress: the
 * servers start without archives.
 */
export async function archiveClasses(
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

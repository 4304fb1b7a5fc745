import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { classArchive } from './jar-cache.ts';
import type { Jars } from './jar-cache.ts';
import { JavaServer } from './java-server.ts';
import { versionText } from './java-tools.ts';
import { startKafka } from './kafka-nodes.ts';
import { registryServer } from './registry-server.ts';
import type { LaunchOptions } from './services.ts';
import { Tethered } from './tethered.ts';

/** The version of Java that made the archives; written last. */
const MADE_BY = 'java-version.txt';

/**
 * Makes the archives of classes (JEP 350) that let both servers start in half the time, unless this version of Java has made them: a launch whose
 * JVMs write the classes that they have loaded to a file as they end. Takes some ten seconds. A JVM that can't make archives leaves none, and that
 * is not tried again.
 */
export async function archiveClasses(
  jars: Jars,
  java: string,
  timeoutMs: number,
  options: LaunchOptions,
): Promise<void> {
  const env = options.env ?? process.env;
  const folder = dirname(classArchive(jars.kafka));
  const madeBy = join(folder, MADE_BY);
  const version = (await versionText(java, '-version', env)) ?? '';
  if (existsSync(madeBy) && (await readFile(madeBy, 'utf8')) === version) return;

  options.onProgress?.('preparing faster starts of both servers, once');
  const tethered = await Tethered.start(`${folder}.partial-`, env);
  const servers = [jars.kafka, jars.registry];
  const fresh = (server: string) => join(tethered.folder, basename(classArchive(server)));
  const write = (server: string) => [`-XX:ArchiveClassesAtExit=${fresh(server)}`];
  try {
    await rm(folder, { recursive: true, force: true });
    const kafka = { javaOptions: write(jars.kafka) };
    const registryKind = registryServer(
      jars.registry,
      jars.registryVersion,
      tethered,
      write(jars.registry),
    );
    const [{ nodes }, registry] = await Promise.all([
      startKafka(jars.kafka, java, tethered, timeoutMs, { kafka }),
      JavaServer.start(registryKind, java, tethered, timeoutMs),
    ]);
    await Promise.all([...nodes, registry].map((server) => server.stop()));
    await mkdir(folder, { recursive: true });
    for (const server of servers.filter((each) => existsSync(fresh(each)))) {
      await rename(fresh(server), classArchive(server));
    }
    await writeFile(madeBy, version);
  } finally {
    await tethered.end();
  }
}

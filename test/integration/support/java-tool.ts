import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { cachedJars } from '../../../src/devstack/jar-cache.ts';

const run = promisify(execFile);
const MAX_OUTPUT_BYTES = 2 ** 28;

/** What a program of Kafka's has printed. */
export interface Printed {
  readonly stdout: Buffer;
  readonly stderr: string;
}

/** Runs one of the programs that come with Kafka; a rejection when it ends with another code than 0. */
export async function javaTool(
  java: string,
  classPath: readonly string[],
  args: readonly string[],
): Promise<Printed> {
  // With it the JVM writes a line of its own to stderr.
  const env = { ...process.env };
  delete env.JDK_JAVA_OPTIONS;
  const { stdout, stderr } = await run(
    java,
    [
      ...['-Xmx256m', '-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-XX:-UsePerfData'],
      ...['-Dfile.encoding=UTF-8', '-Dsun.stdout.encoding=UTF-8', '-Dstdout.encoding=UTF-8'],
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
      ...['-cp', classPath.map((folder) => join(folder, '*')).join(delimiter)],
      ...args,
    ],
    { env, encoding: 'buffer', maxBuffer: MAX_OUTPUT_BYTES },
  );
  return { stdout, stderr: stderr.toString() };
}

/** Class paths of Kafka's programs, of the version in `pom.xml` whatever the broker's is. */
export interface KafkaTools {
  /** With the broker's own programs. */
  readonly broker: readonly string[];
  /** With the command line clients; undefined when Maven could not fetch them. */
  readonly clients: readonly string[] | undefined;
}

/** The jars, fetched by Maven unless they are in the cache. */
export async function kafkaTools(): Promise<KafkaTools> {
  const { kafka, kafkaVersion } = await cachedJars({});
  const cache = dirname(dirname(kafka));
  const folder = join(cache, `kafka-tools-${kafkaVersion}`);
  const isThere = await readdir(folder).then(
    (files) => files.length > 0,
    () => false,
  );
  if (!isThere && !(await fetchClients(kafkaVersion, folder))) {
    return { broker: [kafka], clients: undefined };
  }
  return { broker: [kafka], clients: [folder, kafka] };
}

/** Only that jar: all it depends on is with the broker's. */
async function fetchClients(version: string, folder: string): Promise<boolean> {
  const fresh = await mkdtemp(`${folder}.partial-`);
  try {
    await run('mvn', [
      ...['-B', '-q', 'org.apache.maven.plugins:maven-dependency-plugin:2.10:copy'],
      `-Dartifact=org.apache.kafka:kafka-tools:${version}`,
      `-DoutputDirectory=${fresh}`,
    ]);
    await rename(fresh, folder);
    return true;
  } catch (error) {
    console.warn(`Maven could not fetch kafka-tools ${version}: ${String(error).slice(0, 1_000)}`);
    return false;
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

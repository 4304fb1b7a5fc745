// What servers on Java need of this machine: java and Maven, and the jars that Maven fetches once into a cache.

import { existsSync, readFileSync } from 'node:fs';
import { readFile, readdir, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CellarstreamError } from '../core/errors.ts';
import type { LaunchOptions } from './services.ts';
import { Tethered, type Program } from './tethered.ts';

/** In the package's root, from src and dist alike. */
const POM = fileURLToPath(new URL('../../pom.xml', import.meta.url));

/** Written last, into a folder that is complete: the size in bytes of each file in it, by path. */
const MANIFEST = 'complete.json';

/** What Maven fetched. */
export interface Jars {
  /** Folder of Kafka's jar and all it depends on. */
  readonly kafka: string;
  readonly kafkaVersion: string;
  /** Folder of the registry's unpacked distribution. */
  readonly registry: string;
  readonly registryVersion: string;
}

/** Where the jars are, and what Maven is told of their versions. */
interface Place {
  readonly folder: string;
  readonly kafkaVersion: string;
  readonly registryVersion: string;
}

/** Whether the jars are there, each in its full size. */
export async function isCached(options: LaunchOptions): Promise<boolean> {
  return isComplete(place(options).folder);
}

/**
 * The jars of both servers, fetched by Maven unless they are there. They are fetched into a folder
 * beside their place, which takes that place in one step when it is complete: neither a download
 * that was cut off nor a second launcher that downloads too leaves half a cache.
 *
 * @throws CellarstreamError `SERVICES`, with the first error of Maven's log, when they can't be fetched.
 */
export async function cachedJars(options: LaunchOptions): Promise<Jars> {
  const wanted = place(options);
  const { folder, kafkaVersion, registryVersion } = wanted;
  if (!(await isComplete(folder))) await fetchJars(wanted, options);
  return {
    kafka: join(folder, 'kafka'),
    kafkaVersion,
    registry: join(folder, 'registry'),
    registryVersion,
  };
}

/** Where the archive of a server's classes is, if there is one; `jars` is the server's folder. */
export function classArchive(jars: string): string {
  return join(dirname(jars), 'classes', `${basename(jars)}.jsa`);
}

/** The option for a JVM to use {@link classArchive}; none without one. A JVM ignores an archive that another version of Java made. */
export function sharedClasses(jars: string): readonly string[] {
  const file = classArchive(jars);
  return existsSync(file) ? [`-XX:SharedArchiveFile=${file}`] : [];
}

function place(options: LaunchOptions): Place {
  const env = options.env ?? process.env;
  const cacheDir =
    options.cacheDir ?? join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'cellarstream');
  const pom = readFileSync(POM, 'utf8');
  const version = (name: string) => new RegExp(`<${name}\\.version>(.+?)<`).exec(pom)![1]!;
  const kafkaVersion = options.versions?.kafka ?? version('kafka');
  const registryVersion = options.versions?.registry ?? version('apicurio');
  return {
    folder: join(cacheDir, `kafka-${kafkaVersion}-apicurio-${registryVersion}`),
    kafkaVersion,
    registryVersion,
  };
}

async function fetchJars(wanted: Place, options: LaunchOptions): Promise<void> {
  const { folder, kafkaVersion, registryVersion } = wanted;
  // What is cut off goes with the tether, whose folder it is.
  const tethered = await Tethered.start(`${folder}.partial-`, options.env ?? process.env);
  try {
    const fresh = join(tethered.folder, 'services');
    const args = [
      ...['-B', '-f', POM, `-Dservices.dir=${fresh}`],
      ...[`-Dkafka.version=${kafkaVersion}`, `-Dapicurio.version=${registryVersion}`],
      'process-resources',
    ];
    const maven = await tethered.run('maven', 'mvn', args);
    await report(maven, options.onProgress);
    if ((await maven.whenEnded) !== 'exit code 0') {
      const errors = (await maven.log()).split('\n').filter((line) => line.startsWith('[ERROR]'));
      const cause = errors[0]?.slice('[ERROR]'.length).trim() ?? (await maven.whenEnded);
      throw new CellarstreamError('SERVICES', `Maven could not fetch the servers: ${cause}`);
    }
    await writeFile(join(fresh, MANIFEST), JSON.stringify(await sizes(fresh)));
    await putInPlace(fresh, folder, tethered.folder, isComplete);
  } finally {
    await tethered.end();
  }
}

/** A line a second until Maven has ended. */
async function report(maven: Program, onProgress: LaunchOptions['onProgress']): Promise<void> {
  if (!onProgress) return;
  const began = Date.now();
  const timer = setInterval(() => {
    maven.log().then(
      (log) => onProgress(downloadProgress(log, Date.now() - began)),
      () => undefined, // no log yet
    );
  }, 1_000);
  await maven.whenEnded;
  clearInterval(timer);
}

/**
 * Renames a new folder into the cache. If another process was first, its folder stays if it is complete; otherwise it is moved to `discard`.
 *
 * @param discard A folder that is deleted later.
 */
export async function putInPlace(
  fresh: string,
  folder: string,
  discard: string,
  isComplete: (folder: string) => Promise<boolean>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await rename(fresh, folder);
    } catch (error) {
      if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
    }
    if (await isComplete(folder)) return;
    try {
      await rename(folder, join(discard, `incomplete-${attempt}`));
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error; // another process has moved it
    }
  }
}

function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '');
}

async function isComplete(folder: string): Promise<boolean> {
  try {
    const manifest = JSON.parse(await readFile(join(folder, MANIFEST), 'utf8')) as unknown;
    const found = await Promise.all(
      Object.entries(manifest as Record<string, number>).map(
        async ([path, size]) => (await stat(join(folder, path))).size === size,
      ),
    );
    return found.every(Boolean);
  } catch (error) {
    // A file is missing or the manifest is cut off: not complete, and fetched anew.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') {
      return false;
    }
    throw error;
  }
}

async function sizes(folder: string): Promise<Record<string, number>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const pairs = files.map(async (file) => [relative(folder, file), (await stat(file)).size]);
  return Object.fromEntries(await Promise.all(pairs)) as Record<string, number>;
}

const UNITS: Readonly<Record<string, number>> = { B: 1e-6, kB: 1e-3, MB: 1, GB: 1e3 };

/**
 * What Maven's log says of a download, on one line: how many files have come, how large they are
 * together, and which is on its way.
 *
 * @param log The output of `mvn --batch-mode`, as far as it is written.
 * @param tookMs Since Maven was started.
 */
export function downloadProgress(log: string, tookMs: number): string {
  const done = [...log.matchAll(/Downloaded from \S+ (\S+) \(([\d.]+) ([kMG]?B)/g)];
  const finished = new Set(done.map(([, url]) => url));
  const megabytes = done.reduce((sum, [, , size, unit]) => sum + Number(size) * UNITS[unit!]!, 0);
  const current = [...log.matchAll(/Downloading from \S+ (\S+)/g)]
    .map(([, url]) => url!)
    .findLast((url) => !finished.has(url));
  const now = current === undefined ? '' : `, now ${current.slice(current.lastIndexOf('/') + 1)}`;
  const sum = `${done.length} files, ${megabytes.toFixed(1)} MB, `;
  // Nothing of what Maven has in its own repository is downloaded.
  const downloads = done.length > 0 ? sum : '';
  return (
    `fetching Kafka and the schema registry: ${downloads}` + `${Math.round(tookMs / 1000)} s${now}`
  );
}

const run = promisify(execFile);

/** The oldest Java that both servers run on. */
const OLDEST_JAVA = 17;

/** A program to start, or why there is none, as part of a sentence. */
type Tool =
  | { readonly found: true; readonly command: string; readonly reason?: undefined }
  | { readonly found: false; readonly reason: string };

/** The `java` of `JAVA_HOME` if that is set, else the one on the `PATH`; `oldest` or newer, default 17. */
export async function findJava(env: NodeJS.ProcessEnv, oldest = OLDEST_JAVA): Promise<Tool> {
  const home = env.JAVA_HOME;
  const command = home ? join(home, 'bin', 'java') : 'java';
  const where = home ? 'in JAVA_HOME' : 'on the PATH';
  const text = await versionText(command, '-version', env);
  if (text === undefined) return { found: false, reason: `no working java ${where}` };
  const version = /version "(?:1\.)?(\d+)/.exec(text)?.[1] ?? 'of an unknown version';
  return Number(version) >= oldest
    ? { found: true, command }
    : { found: false, reason: `the java ${where} is ${version}` };
}

/** The `mvn` on the `PATH`. */
export async function findMaven(env: NodeJS.ProcessEnv): Promise<Tool> {
  const text = await versionText('mvn', '--version', env);
  return text === undefined
    ? { found: false, reason: 'no working mvn on the PATH' }
    : { found: true, command: 'mvn' };
}

/** What the program says of itself, on either stream; undefined when it can't be run. */
export async function versionText(
  command: string,
  flag: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await run(command, [flag], { env, timeout: 30_000 });
    return stderr + stdout;
  } catch {
    // Absent, not executable, or broken: to the caller all the same, it is of no use.
    return undefined;
  }
}

// Cache of the servers' jars, which Maven downloads, and the programs `java` and `mvn`.

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

/** pom.xml in the package's root; the relative path is the same from src and dist. */
const POM = fileURLToPath(new URL('../../pom.xml', import.meta.url));

/** Name of the file that marks a cache folder as complete. It contains the size in bytes of each file, by path, and is written last. */
const MANIFEST = 'complete.json';

/** Folders that contain the jars of Kafka and of the schema registry, and the versions of both servers. */
export interface Jars {
  /** Cache folder that contains the folders `kafka` and `registry`. */
  readonly folder: string;
  readonly kafka: string;
  readonly kafkaVersion: string;
  readonly registry: string;
  readonly registryVersion: string;
}

/** Whether all jars of Kafka and of the schema registry are cached, each with its full size. */
export async function isCached(options: LaunchOptions): Promise<boolean> {
  return isComplete(wantedJars(options).folder);
}

/**
 * Returns the jars of Kafka and of the schema registry. Jars that are not cached are downloaded.
 *
 * @throws CellarstreamError `SERVICES`, with the first error of Maven's log, if the download fails.
 */
export async function cachedJars(options: LaunchOptions): Promise<Jars> {
  const jars = wantedJars(options);
  if (!(await isComplete(jars.folder))) await fetchJars(jars, options);
  return jars;
}

/**
 * Returns the path of the class archive (JEP 350) with which a server's JVM starts faster. The file need not exist. `jars`: the folder of
 * the server's jars.
 */
export function classArchive(jars: string): string {
  return join(dirname(jars), 'classes', `${basename(jars)}.jsa`);
}

/** Returns the JVM option that loads a server's class archive ({@link classArchive}); empty if the archive does not exist. */
export function sharedClasses(jars: string): readonly string[] {
  const file = classArchive(jars);
  return existsSync(file) ? [`-XX:SharedArchiveFile=${file}`] : [];
}

/** Returns where the jars of the wanted versions are, or will be once they are downloaded. */
function wantedJars(options: LaunchOptions): Jars {
  const env = options.env ?? process.env;
  const cacheDir =
    options.cacheDir ?? join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'cellarstream');
  const pom = readFileSync(POM, 'utf8');
  const version = (name: string) => new RegExp(`<${name}\\.version>(.+?)<`).exec(pom)![1]!;
  const kafkaVersion = options.versions?.kafka ?? version('kafka');
  const registryVersion = options.versions?.registry ?? version('apicurio');
  const folder = join(cacheDir, `kafka-${kafkaVersion}-apicurio-${registryVersion}`);
  const [kafka, registry] = [join(folder, 'kafka'), join(folder, 'registry')];
  return { folder, kafka, kafkaVersion, registry, registryVersion };
}

async function fetchJars(
  { folder, kafkaVersion, registryVersion }: Jars,
  options: LaunchOptions,
): Promise<void> {
  // An interrupted download is deleted by the helper process (`tether.ts`), which owns this temporary folder.
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
      throw new CellarstreamError(
        'SERVICES',
        `Maven could not download Kafka and the schema registry: ${cause}`,
      );
    }
    await writeFile(join(fresh, MANIFEST), JSON.stringify(await sizes(fresh)));
    await installFolder(fresh, folder, tethered.folder, isComplete);
  } finally {
    await tethered.end();
  }
}

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
 * Moves the folder `fresh` to the path `folder`, unless another process has put a complete folder there. If the folder there is
 * incomplete, it is first moved into the folder `discard`, which the caller deletes.
 */
export async function installFolder(
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
      if (!hasCode(error, 'ENOENT')) throw error; // ENOENT: another process has moved the folder
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
    // A file is missing or the manifest is truncated: the cache is incomplete and is downloaded again.
    if (error instanceof SyntaxError || hasCode(error, 'ENOENT')) return false;
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
 * Summarizes a download on one line: number and total size of the downloaded files, elapsed time, and the current file.
 *
 * @param log The output of `mvn --batch-mode` so far.
 * @param tookMs Time since Maven was started, in ms.
 */
export function downloadProgress(log: string, tookMs: number): string {
  const done = [...log.matchAll(/Downloaded from \S+ (\S+) \(([\d.]+) ([kMG]?B)/g)];
  const finished = new Set(done.map(([, url]) => url));
  const megabytes = done.reduce((sum, [, , size, unit]) => sum + Number(size) * UNITS[unit!]!, 0);
  const current = [...log.matchAll(/Downloading from \S+ (\S+)/g)]
    .map(([, url]) => url!)
    .findLast((url) => !finished.has(url));
  const now = current === undefined ? '' : `, now ${current.slice(current.lastIndexOf('/') + 1)}`;
  // Files in Maven's local repository are not downloaded.
  const sum = done.length > 0 ? `${done.length} files, ${megabytes.toFixed(1)} MB, ` : '';
  return `fetching Kafka and the schema registry: ${sum}${Math.round(tookMs / 1000)} s${now}`;
}

const run = promisify(execFile);

/** Oldest Java version that both Kafka and the registry support. */
const OLDEST_JAVA = 17;

/** The command of a program, or the reason why the program cannot be run, as a phrase for error messages. */
type Tool =
  | { readonly found: true; readonly command: string; readonly reason?: undefined }
  | { readonly found: false; readonly reason: string };

/** Finds the `java` of `JAVA_HOME` or, if that is not set, the `java` on the `PATH`. The version must be at least `oldest`. */
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

export async function findMaven(env: NodeJS.ProcessEnv): Promise<Tool> {
  const text = await versionText('mvn', '--version', env);
  return text === undefined
    ? { found: false, reason: 'no working mvn on the PATH' }
    : { found: true, command: 'mvn' };
}

/** Runs a program with its version flag, for at most 30 s, and returns its output; undefined if it can't be run or fails. */
export async function versionText(
  command: string,
  flag: string,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  try {
    const { stdout, stderr } = await run(command, [flag], { env, timeout: 30_000 });
    return stderr + stdout;
  } catch {
    return undefined;
  }
}

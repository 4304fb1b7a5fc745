import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { cachedJars, isCached } from '../../src/devstack/jar-cache.ts';

/** Stands in for Maven: notes that it ran, then fetches, hangs or fails, as FAKE_MAVEN says. */
const MVN = `#!/bin/sh
for argument in "$@"; do
  case "$argument" in -Dservices.dir=*) dir="\${argument#*=}" ;; esac
done
echo $$ >> "$FAKE_MAVEN_RUNS"
echo "$@" > "$FAKE_MAVEN_RUNS.arguments"
mkdir -p "$dir/kafka" "$dir/registry/lib"
echo some-jar > "$dir/kafka/a.jar"
case "$FAKE_MAVEN" in
  hang) exec sleep 600 ;;
  fail) echo '[INFO] trying'; echo '[ERROR] no such repository'; echo '[ERROR] see above'; exit 1 ;;
esac
echo other-jar > "$dir/registry/lib/b.jar"
`;

let scratch: string;
let cacheDir: string;
let runsFile: string;

beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
  cacheDir = join(scratch, 'cache');
  runsFile = join(scratch, 'runs');
  mkdirSync(join(scratch, 'bin'));
  writeFileSync(join(scratch, 'bin', 'mvn'), MVN, { mode: 0o755 });
  writeFileSync(runsFile, '');
});
afterEach(() => {
  rmSync(scratch, { recursive: true });
});

const envFor = (behaviour = 'fetch') => ({
  ...process.env,
  PATH: join(scratch, 'bin') + delimiter + process.env.PATH!,
  FAKE_MAVEN: behaviour,
  FAKE_MAVEN_RUNS: runsFile,
});
const options = (behaviour?: string) => ({ cacheDir, env: envFor(behaviour) });
const runs = () => readFileSync(runsFile, 'utf8').split('\n').filter(Boolean);
const entries = () => readdirSync(cacheDir);

it('fetches once, and finds what it fetched', async () => {
  expect(await isCached(options())).toBe(false);
  const jars = await cachedJars(options());
  expect(readFileSync(join(jars.kafka, 'a.jar'), 'utf8')).toBe('some-jar\n');
  expect(readFileSync(join(jars.registry, 'lib', 'b.jar'), 'utf8')).toBe('other-jar\n');
  expect(await isCached(options())).toBe(true);
  expect(await cachedJars(options())).toEqual(jars);
  expect(runs()).toHaveLength(1);
  expect(entries()).toEqual([`kafka-4.1.1-apicurio-${jars.registryVersion}`]);
});

it('keeps each version in a folder of its own, and asks Maven for that', async () => {
  await cachedJars(options());
  for (const versions of [{ kafka: '3.9.2' }, { registry: '2.6.13.Final' }]) {
    const wanted = { ...options(), versions };
    expect(await isCached(wanted)).toBe(false);
    expect(await cachedJars(wanted)).toMatchObject({
      registryVersion: versions.registry ?? '3.0.9',
    });
    expect(await isCached(wanted)).toBe(true);
    const told = readFileSync(`${runsFile}.arguments`, 'utf8').split(/\s/);
    expect(told).toContain(`-Dkafka.version=${versions.kafka ?? '4.1.1'}`);
    expect(told).toContain(`-Dapicurio.version=${versions.registry ?? '3.0.9'}`);
  }
  expect(runs()).toHaveLength(3);
  expect(entries().sort()).toEqual([
    'kafka-3.9.2-apicurio-3.0.9',
    'kafka-4.1.1-apicurio-2.6.13.Final',
    'kafka-4.1.1-apicurio-3.0.9',
  ]);
});

it.each([
  ['a jar is cut off', (folder: string) => truncateSync(join(folder, 'kafka', 'a.jar'), 3)],
  ['a jar is missing', (folder: string) => rmSync(join(folder, 'registry', 'lib', 'b.jar'))],
  ['it was never completed', (folder: string) => rmSync(join(folder, 'complete.json'))],
  ['the manifest is cut off', (folder: string) => truncateSync(join(folder, 'complete.json'), 5)],
])('fetches anew when %s', async (_, spoil) => {
  const jars = await cachedJars(options());
  spoil(join(cacheDir, entries()[0]!));
  expect(await isCached(options())).toBe(false);
  expect(await cachedJars(options())).toEqual(jars);
  expect(await isCached(options())).toBe(true);
  expect(readFileSync(join(jars.kafka, 'a.jar'), 'utf8')).toBe('some-jar\n');
  expect(runs()).toHaveLength(2);
  expect(entries()).toHaveLength(1);
});

it('is shared by launchers that fetch at the same time', async () => {
  const [one, other] = await Promise.all([cachedJars(options()), cachedJars(options())]);
  expect(one).toEqual(other);
  expect(await isCached(options())).toBe(true);
  expect(entries()).toHaveLength(1);
});

it('says why Maven failed, and leaves nothing', async () => {
  await expect(cachedJars(options('fail'))).rejects.toMatchObject({
    code: 'SERVICES',
    message: 'Maven could not download Kafka and the schema registry: no such repository',
  });
  expect(entries()).toEqual([]);
});

it('leaves neither Maven nor half a cache when the launcher is killed as it fetches', async () => {
  const module = new URL('../../dist/devstack/jar-cache.js', import.meta.url).href;
  const program =
    `import { cachedJars } from ${JSON.stringify(module)};` +
    `await cachedJars({ cacheDir: ${JSON.stringify(cacheDir)} });`;
  const launcher = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    env: envFor('hang'),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await vi.waitUntil(() => runs().length === 1, { timeout: 20_000, interval: 20 });
  expect(entries()).toHaveLength(1);
  launcher.kill('SIGKILL');
  await once(launcher, 'exit');
  await vi.waitUntil(() => entries().length === 0, { timeout: 20_000, interval: 20 });
  expect(() => process.kill(Number(runs()[0]), 0)).toThrow('ESRCH');
});

it('tells of its progress while Maven runs', async () => {
  const lines: string[] = [];
  const launch = cachedJars({
    ...options('hang'),
    onProgress: (line) => {
      lines.push(line);
      // The fake waits to be ended: by the launcher's failure, not by the test's patience.
      if (lines.length === 2) process.kill(Number(runs()[0]), 'SIGTERM');
    },
  });
  await expect(launch).rejects.toMatchObject({ code: 'SERVICES' });
  expect(lines[0]).toMatch(/^fetching Kafka and the schema registry: \d+ s$/);
});

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { expect, it, afterAll, beforeAll, describe } from 'vitest';
import { downloadProgress, findJava, findMaven } from '../../src/devstack/jar-cache.ts';

const log = `[INFO] Scanning for projects...
[INFO] Downloading from central: https://repo.example/org/a/1/a-1.pom
[INFO] Downloaded from central: https://repo.example/org/a/1/a-1.pom (512 B at 3.2 kB/s)
[INFO] Downloading from central: https://repo.example/org/a/1/a-1.jar
[INFO] Downloading from central: https://repo.example/org/b/1/b-1.jar
[INFO] Downloaded from central: https://repo.example/org/b/1/b-1.jar (1.5 MB at 9.9 MB/s)
`;

it('counts what has come and names what is on its way', () => {
  expect(downloadProgress(log, 3_400)).toBe(
    'fetching Kafka and the schema registry: 2 files, 1.5 MB, 3 s, now a-1.jar',
  );
});

it('tells no sum while Maven downloads nothing', () => {
  expect(downloadProgress('[INFO] Scanning for projects...\n', 1_000)).toBe(
    'fetching Kafka and the schema registry: 1 s',
  );
});

it('stays right over 1 GB and under 1 kB', () => {
  const line = (size: string) =>
    `Downloaded from mirror: https://repo.example/a.jar (${size} at 1 MB/s)\n`;
  expect(downloadProgress(line('1.5 GB') + line('9 B') + line('500 kB'), 0)).toContain('1500.5 MB');
});

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
});
afterAll(() => {
  rmSync(home, { recursive: true });
});

/** A folder with one program that writes the line to stderr, as `java -version` does. */
function fakeProgram(name: string, line: string): string {
  const folder = mkdtempSync(join(home, 'bin-'));
  const file = join(folder, name);
  writeFileSync(file, `#!/bin/sh\necho '${line}' >&2\n`);
  chmodSync(file, 0o755);
  return folder;
}

describe('findJava', () => {
  it.each([
    ['17.0.15', 'openjdk version "17.0.15" 2025-04-15'],
    ['an early build of 25', 'openjdk version "25-ea" 2025-09-16'],
  ])('takes %s', async (_, line) => {
    const env = { PATH: fakeProgram('java', line) + delimiter + process.env.PATH! };
    expect(await findJava(env)).toEqual({ found: true, command: 'java' });
  });

  it.each([
    ['11.0.2', 'openjdk version "11.0.2"', 'the java on the PATH is 11'],
    ['8 in its old numbering', 'java version "1.8.0_292"', 'the java on the PATH is 8'],
    ['what says nothing of a version', 'ok', 'the java on the PATH is of an unknown version'],
  ])('refuses %s', async (_, line, reason) => {
    const env = { PATH: fakeProgram('java', line) + delimiter + process.env.PATH! };
    expect(await findJava(env)).toEqual({ found: false, reason });
  });

  it('goes by JAVA_HOME before the PATH', async () => {
    const bin = fakeProgram('java', 'openjdk version "21.0.1"');
    const javaHome = mkdtempSync(join(home, 'jdk-'));
    mkdirSync(join(javaHome, 'bin'));
    writeFileSync(join(javaHome, 'bin', 'java'), `#!/bin/sh\necho 'version "11"' >&2\n`, {
      mode: 0o755,
    });
    const env = { PATH: bin + delimiter + process.env.PATH!, JAVA_HOME: javaHome };
    expect(await findJava(env)).toEqual({ found: false, reason: 'the java in JAVA_HOME is 11' });
  });

  it('says when there is none', async () => {
    expect(await findJava({ PATH: '' })).toEqual({
      found: false,
      reason: 'no working java on the PATH',
    });
  });
});

describe('findMaven', () => {
  it('finds it on the PATH', async () => {
    const env = { PATH: fakeProgram('mvn', 'Apache Maven 3.8.7') + delimiter + process.env.PATH! };
    expect(await findMaven(env)).toEqual({ found: true, command: 'mvn' });
  });

  it('says when there is none', async () => {
    expect(await findMaven({ PATH: '' })).toEqual({
      found: false,
      reason: 'no working mvn on the PATH',
    });
  });
});

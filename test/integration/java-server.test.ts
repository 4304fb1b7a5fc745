import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  cachedJars,
  classArchive,
  isCached,
  sharedClasses,
  findJava,
} from '../../src/devstack/jar-cache.ts';
import { JavaServer, type JavaServerKind } from '../../src/devstack/java-server.ts';
import { jarOf } from '../../src/devstack/registry-server.ts';
import { Tethered } from '../../src/devstack/tethered.ts';

let scratch: string;
let tethered: Tethered;
let prepared: (readonly number[])[];

beforeEach(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'cellarstream-test-'));
  tethered = await Tethered.start(join(scratch, 'run-'), process.env);
  prepared = [];
});
afterEach(async () => {
  await tethered.end();
  rmSync(scratch, { recursive: true });
});

/** Stands in for `java`: a shell script. */
function fakeJava(script: string): string {
  const file = join(scratch, 'java');
  writeFileSync(file, `#!/bin/sh\ncd '${scratch}'\necho started >> starts\n${script}\n`, {
    mode: 0o755,
  });
  return file;
}
const starts = () => readFileSync(join(scratch, 'starts'), 'utf8').trim().split('\n').length;

const kind = (answers: () => boolean): JavaServerKind => ({
  title: 'The server',
  name: 'server',
  portCount: 2,
  portTaken: /Address already in use/,
  prepare: (ports) => {
    prepared.push(ports);
    return Promise.resolve();
  },
  args: () => [],
  probe: () => () => Promise.resolve(answers()),
});

it('tries other ports when somebody takes one in between', async () => {
  const java = fakeJava(
    '[ $(wc -l < starts) -lt 3 ] && echo Address already in use && exit 1\nsleep 600',
  );
  const server = await JavaServer.start(
    kind(() => starts() === 3),
    { java, tethered, readyTimeoutMs: 20_000 },
  );
  expect(prepared).toHaveLength(3);
  expect(prepared[2]).not.toEqual(prepared[0]);
  expect(server.ports).toBe(prepared[2]);
  expect(server.pid).toBeGreaterThan(0);
});

it('gives up on ports after five tries', async () => {
  const java = fakeJava('echo Address already in use; exit 1');
  await expect(
    JavaServer.start(
      kind(() => false),
      { java, tethered, readyTimeoutMs: 20_000 },
    ),
  ).rejects.toMatchObject({
    code: 'SERVICES',
  });
  expect(starts()).toBe(5);
});

it('tells how a server ended and the end of its log, and does not try again', async () => {
  const java = fakeJava('seq 100; echo no memory; exit 7');
  const error: unknown = await JavaServer.start(
    kind(() => false),
    { java, tethered, readyTimeoutMs: 20_000 },
  ).catch((reason: unknown) => reason);
  expect(error).toMatchObject({
    code: 'SERVICES',
    message: expect.stringMatching(
      /^The server ended \(exit code 7\)[^]*\n99\n100\nno memory$/,
    ) as string,
  });
  expect((error as Error).message).not.toContain('\n80\n');
  expect(starts()).toBe(1);
});

it('waits no longer than it is told to', async () => {
  const java = fakeJava('echo thinking; exec sleep 600');
  await expect(
    JavaServer.start(
      kind(() => false),
      { java, tethered, readyTimeoutMs: 300 },
    ),
  ).rejects.toMatchObject({
    code: 'SERVICES',
    message: 'The server did not answer within 0.3 s; the end of its log:\nthinking',
  });
});

it('shows the log of the server that is late, also where several are started together', async () => {
  const java = fakeJava('for name; do :; done; echo "log of $name"; exec sleep 600');
  const named = (name: string): JavaServerKind => ({
    ...kind(() => true),
    ...{ title: `The ${name}`, name, args: () => [name] },
  });
  const launch = { java, tethered, readyTimeoutMs: 1_000 };
  const [, second] = await JavaServer.startTogether([named('first'), named('second')], launch);
  await expect(second!.untilReady(() => Promise.resolve(false))).rejects.toMatchObject({
    message: 'The second did not answer within 1 s; the end of its log:\nlog of second',
  });
});

it('says which program it could not run', async () => {
  const java = join(scratch, 'absent');
  await expect(
    JavaServer.start(
      kind(() => false),
      { java, tethered, readyTimeoutMs: 300 },
    ),
  ).rejects.toMatchObject({
    code: 'SERVICES',
    message: `could not run ${java}: spawn ${java} ENOENT`,
  });
});

it('does not wait for a program for ever once its helper process has ended', async () => {
  // The helper process can't write the log of this command: its folder is missing.
  await expect(tethered.run('absent/program', 'true', [])).rejects.toMatchObject({
    code: 'SERVICES',
    message: 'could not run true: the helper process that runs the servers has ended',
  });
});

it('tells that the helper process of a server was killed', async () => {
  const java = fakeJava('until [ -e probed ]; do sleep 0.01; done; kill -9 $PPID; exec sleep 1');
  const probed = () => {
    writeFileSync(join(scratch, 'probed'), ''); // only now is the server known to have started
    return false;
  };
  await expect(
    JavaServer.start(kind(probed), { java, tethered, readyTimeoutMs: 20_000 }),
  ).rejects.toMatchObject({
    message: expect.stringContaining('The server ended (the helper process') as string,
  });
});

const java = await findJava(process.env);
const jars = java.found && (await isCached({})) ? await cachedJars({}) : undefined;
const hasStarted = jars !== undefined && existsSync(dirname(classArchive(jars.kafka)));

it.skipIf(!hasStarted)(
  'loads the classes of both servers from archives (skipped where other servers are used)',
  () => {
    // With -Xshare:on, Java ends with an error where it can't use an archive.
    const load = (folder: string, ...classPath: readonly string[]) => {
      const archive = sharedClasses(folder);
      expect(archive).toHaveLength(1);
      const flags = ['-XX:+UseSerialGC', '-Xshare:on', ...archive];
      const all = [...flags, '-cp', ...classPath, '-version'];
      return execFileSync(java.found ? java.command : 'java', all, {
        encoding: 'utf8',
        stdio: 'pipe',
      });
    };
    load(jars!.kafka, join(jars!.kafka, '*'));
    load(jars!.registry, jarOf(jars!.registry, jars!.registryVersion));
  },
);

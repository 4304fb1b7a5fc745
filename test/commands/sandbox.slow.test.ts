import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { parseEnv } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { login } from '../sandbox/client.ts';

const CLI = fileURLToPath(new URL('../../dist/cli.js', import.meta.url));

let folder: string;
let running: ChildProcessByStdio<null, Readable, Readable>;

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'sandbox-command-')));
});
afterEach(async () => {
  running.kill('SIGKILL');
  await rm(folder, { recursive: true });
});

/** Starts it in the folder, on a free port. @returns what it prints first. */
async function sandbox(...flags: string[]): Promise<string> {
  const args = [CLI, 'sandbox', '--port', '0', '--orders', '10', ...flags];
  running = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const [text] = (await once(running.stdout.setEncoding('utf8'), 'data')) as [string];
  return text;
}

it('prints the settings for one account', async () => {
  expect(await sandbox()).toMatch(
    /^API_BASE_URL=http:\/\/127\.0\.0\.1:\d+\nAPI_KEY=sandbox-key\n$/,
  );
});

it('prints the settings for the first of many, and the keys of the others', async () => {
  const text = await sandbox('--accounts', '10', '--api-key', 'k');
  const { API_BASE_URL: url = '', ...rest } = parseEnv(text);
  expect(rest).toEqual({ API_KEY: 'k' });
  expect(text).toContain('\n# winery-02: API_KEY=k-2\n');
  for (const apiKey of ['k', 'k-2', 'k-10'])
    expect((await login({ url, apiKey })).status).toBe(200);
  expect((await login({ url, apiKey: 'k-11' })).status).toBe(400);
});

it('writes a file for each account, with which it can be used, and ends at a signal', async () => {
  const settings = parseEnv(await sandbox('--accounts', '2', '--accounts-dir', 'accounts'));
  expect(Object.keys(settings).sort()).toEqual(['ACCOUNTS_DIR', 'API_BASE_URL']);
  expect(settings.ACCOUNTS_DIR).toBe(join(folder, 'accounts'));
  for (const name of ['winery-1', 'winery-2']) {
    const file = parseEnv(await readFile(join(folder, 'accounts', `${name}.env`), 'utf8'));
    const answer = await login({ url: file.API_BASE_URL!, apiKey: file.API_KEY! });
    expect(answer.status).toBe(200);
  }
  running.kill('SIGTERM');
  expect(await once(running, 'exit')).toEqual([0, null]);
});

it('ends with one line and exit code 2 where a file is another', async () => {
  await writeFile(join(folder, 'winery-1.env'), 'API_KEY=mine\n');
  const args = [CLI, 'sandbox', '--port', '0', '--orders', '10', '--accounts-dir', '.'];
  running = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  const errors = running.stderr.setEncoding('utf8').toArray();
  expect(await once(running, 'exit')).toEqual([2, null]);
  expect((await errors).join('')).toBe(
    'cellarstream: winery-1.env exists with other content: remove the file, or choose another --accounts-dir\n',
  );
});

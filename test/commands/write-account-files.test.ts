import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { writeAccountFiles } from '../../src/commands/write-account-files.ts';
import { startSandbox } from '../../src/sandbox/index.ts';
import type { Sandbox } from '../../src/sandbox/index.ts';

let dir: string;
let sandbox: Sandbox;

beforeEach(async () => {
  dir = join(await mkdtemp(join(tmpdir(), 'account-files-')), 'deep', 'accounts');
  sandbox = await startSandbox({ accounts: 10 });
});
afterEach(async () => {
  await sandbox.close();
  await rm(join(dir, '../..'), { recursive: true });
});

describe('writeAccountFiles', () => {
  it('makes a folder with a file for each account', async () => {
    await writeAccountFiles(dir, sandbox);
    expect(await readdir(dir)).toEqual(sandbox.accounts.map(({ name }) => `${name}.env`));
    for (const { name, apiKey } of sandbox.accounts) {
      const text = await readFile(join(dir, `${name}.env`), 'utf8');
      expect(text).toBe(`API_BASE_URL=${sandbox.url}\nAPI_KEY=${apiKey}\n`);
    }
  });

  it('leaves files alone that say the same, and writes those that are missing', async () => {
    await writeAccountFiles(dir, sandbox);
    const kept = join(dir, 'winery-04.env');
    const { mtimeMs } = await stat(kept);
    await rm(join(dir, 'winery-05.env'));
    await writeFile(join(dir, 'other.env'), 'API_KEY=other\n');
    await writeAccountFiles(dir, sandbox);
    expect(await readdir(dir)).toHaveLength(11);
    expect((await stat(kept)).mtimeMs).toBe(mtimeMs);
  });

  it('writes nothing where a file says anything else, and names it in one line', async () => {
    await writeAccountFiles(dir, sandbox);
    const other = join(dir, 'winery-07.env');
    await writeFile(other, 'API_KEY=mine\n');
    await rm(join(dir, 'winery-01.env'));
    const writing = writeAccountFiles(dir, sandbox);
    await expect(writing).rejects.toMatchObject({ code: 'SETTINGS' });
    await expect(writing).rejects.toThrow(
      `${other} exists with other content: remove the file, or choose another --accounts-dir`,
    );
    expect(await readFile(other, 'utf8')).toBe('API_KEY=mine\n');
    expect(await readdir(dir)).toHaveLength(9);
  });

  it('says what is wrong with the folder', async () => {
    await writeAccountFiles(dir, sandbox);
    await expect(writeAccountFiles(join(dir, 'winery-01.env'), sandbox)).rejects.toMatchObject({
      code: 'SETTINGS',
      message: expect.stringMatching(/^--accounts-dir: .*winery-01\.env/) as string,
    });
  });
});

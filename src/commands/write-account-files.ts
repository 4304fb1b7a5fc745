import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CellarstreamError } from '../core/errors.ts';
import type { Sandbox } from '../sandbox/index.ts';

/**
 * Writes a file `<account>.env` for each account of a sandbox, in the format of `ACCOUNTS_DIR`. If a file exists with other content,
 * nothing is written.
 *
 * @throws CellarstreamError `SETTINGS` if a file exists with other content, or files can't be read or written.
 */
export async function writeAccountFiles(
  dir: string,
  { url, accounts }: Pick<Sandbox, 'url' | 'accounts'>,
): Promise<void> {
  const files = accounts.map(({ name, apiKey }) => ({
    path: join(dir, `${name}.env`),
    text: `API_BASE_URL=${url}\nAPI_KEY=${apiKey}\n`,
  }));
  try {
    await mkdir(dir, { recursive: true });
    const missing = [];
    for (const file of files) {
      const there = await textOf(file.path);
      if (there === undefined) missing.push(file);
      else if (there !== file.text) {
        throw new CellarstreamError(
          'SETTINGS',
          `${file.path} exists with other content: remove the file, or choose another --accounts-dir`,
        );
      }
    }
    // `wx`: never overwrite a file created in the meantime.
    for (const { path, text } of missing) await writeFile(path, text, { flag: 'wx' });
  } catch (cause) {
    if (cause instanceof CellarstreamError) throw cause;
    throw new CellarstreamError(
      'SETTINGS',
      `--accounts-dir: the accounts' files can't be read or written: ${(cause as Error).message}`,
      { cause },
    );
  }
}

/** Returns the content of a file; undefined if there is no such file. */
async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

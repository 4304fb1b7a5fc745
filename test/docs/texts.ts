import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A file of the package's root folder, as text. */
export function text(path: string): string {
  return readFileSync(pathOf(path), 'utf8');
}

/** Where a path from the package's root folder leads. */
export function pathOf(path: string): string {
  return fileURLToPath(new URL(`../../${path}`, import.meta.url));
}

/** The fenced blocks of a Markdown text, of one language. */
export function blocks(markdown: string, language: string): string[] {
  const fenced = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms');
  return [...markdown.matchAll(fenced)].map(([, block]) => block!);
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the built command with no settings but these, until it ends. */
export function cellarstream(
  args: readonly string[],
  settings: NodeJS.ProcessEnv = {},
): Promise<Ended> {
  const cli = pathOf('dist/cli.js');
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, ...settings };
  // A folder without a .env.
  const options = { cwd: pathOf('test/docs'), env };
  return new Promise((resolve) => {
    execFile(process.execPath, [cli, ...args], options, (error, stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

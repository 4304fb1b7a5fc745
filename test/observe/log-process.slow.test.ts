import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';

describe('createLogger in a process of its own', () => {
  it.each([
    ['JSON', '', false],
    ['readable lines', 'pretty: true', true],
  ])('writes %s to stderr at once, and loads what it needs', (_, options, pretty) => {
    const { signal, stdout, stderr } = runModule(`
      import { createRequire } from 'node:module';
      import { createLogger } from 'LOG';
      const logger = await createLogger({ level: 'info', ${options} });
      for (let line = 1; line <= 500; line++) logger.info('line ' + line + '.');
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      console.log(loaded.some((path) => path.includes('pino-pretty')));
      process.kill(process.pid, 'SIGKILL'); // nothing is flushed after this
    `);
    expect(stdout).toBe(`${pretty}\n`);
    expect(stderr.match(/line \d+\./g)).toHaveLength(500);
    expect(stderr.startsWith('{')).toBe(!pretty);
    expect(signal).toBe('SIGKILL');
  });

  it('keeps no process alive', () => {
    const { status, stderr } = runModule(`
      import { createLogger } from 'LOG';
      (await createLogger({ level: 'info', pretty: true })).info('the last line');
    `);
    expect(stderr).toContain('the last line');
    expect(status).toBe(0);
  });
});

/** Lets Node run TypeScript; Node 20 can't of itself. */
const HOOKS = `
  import { readFileSync } from 'node:fs';
  import { fileURLToPath } from 'node:url';
  import ts from '${import.meta.resolve('typescript')}';
  const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  export async function load(url, context, next) {
    if (!url.endsWith('.ts')) return next(url, context);
    const source = ts.transpile(readFileSync(fileURLToPath(url), 'utf8'), compilerOptions);
    return { format: 'module', shortCircuit: true, source };
  }
`;
const dataUrl = (code: string) => `data:text/javascript,${encodeURIComponent(code)}`;
const REGISTER = `
  import { register } from 'node:module';
  register(${JSON.stringify(dataUrl(HOOKS))});
`;

/** Runs a module's text in a process of its own; `LOG` stands for the file under test. */
function runModule(text: string) {
  const code = text.replace('LOG', new URL('../../src/observe/log.ts', import.meta.url).href);
  return spawnSync(
    process.execPath,
    ['--import', dataUrl(REGISTER), '--input-type=module', '-e', code],
    { encoding: 'utf8', timeout: 20_000 },
  );
}

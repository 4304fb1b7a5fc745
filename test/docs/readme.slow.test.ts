import { describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';
import { blocks, cellarstream, text } from './texts.ts';

const README = text('README.md');
const COMMANDS = text('docs/commands.md');
const SHELL = [README, COMMANDS, text('CONTRIBUTING.md')]
  .flatMap((page) => blocks(page, 'sh'))
  .join('\n')
  .replace(/ #.*$/gm, '');
const NPMS_OWN = ['ci', 'audit'];
const { scripts, version } = JSON.parse(text('package.json')) as {
  scripts: Record<string, string>;
  version: string;
};

describe('what the texts tell people to type', () => {
  it('npm scripts are there', () => {
    const named = [...SHELL.matchAll(/\bnpm (?:run )?([a-z][\w:-]*)/g)].map(([, name]) => name!);
    expect(named).toEqual(expect.arrayContaining(['start', 'test', 'build']));
    expect(Object.keys(scripts)).toEqual(
      expect.arrayContaining(named.filter((name) => !NPMS_OWN.includes(name))),
    );
  });

  it('commands and their flags are in --help', async () => {
    const typed = [...SHELL.matchAll(/\bnpx cellarstream (\S+)(.*)$/gm)];
    expect(typed.map(([, command]) => command)).toEqual(
      expect.arrayContaining(['run', 'check', 'peek']),
    );
    for (const command of new Set(typed.map(([, command]) => command!))) {
      const { code, stdout } = await cellarstream([command, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain(`Usage: cellarstream ${command}`);
      const rest = typed.filter(([, other]) => other === command).map(([line]) => line);
      for (const [flag] of rest.join('\n').matchAll(/--[\w-]+/g)) {
        expect(stdout).toContain(` ${flag} `);
      }
    }
  });

  it('every command is in the README, and in the reference', async () => {
    const { stdout } = await cellarstream(['--help']);
    const commands = [
      ...stdout.matchAll(/^ {2}(\w+)(?: \[options\])?(?: <\w+>| \[\w+\.{3}\])? {2,}/gm),
    ]
      .map(([, command]) => command!)
      .filter((command) => command !== 'help');
    expect(commands).toContain('run');
    for (const command of commands) expect(README).toMatch(new RegExp(`\\b${command}\\b`));
    const rows = [...COMMANDS.matchAll(/^\| `(\w+)` \|/gm)].map(([, command]) => command!);
    expect(rows.sort()).toEqual(commands.sort());
  });

  it('settings are in docs/settings.md', () => {
    const rows = [...text('docs/settings.md').matchAll(/^\| `([A-Z_]+)`(?: \*)? \|/gm)].map(
      ([, name]) => name,
    );
    const named = [...README.matchAll(/\b(?!CHANGELOG|CONTRIBUTING|FULL_)[A-Z]+_[A-Z_]+\b/g)];
    expect(named.length).toBeGreaterThan(10);
    expect(rows).toEqual(expect.arrayContaining(named.map(([name]) => name)));
  });
});

describe('the table of exit codes', () => {
  const rows = [...COMMANDS.matchAll(/^\| (\d) \| (.+) \|$/gm)].map(([, code]) => Number(code));

  it('has each, once', () => {
    expect(rows).toEqual([0, 1, 2]);
  });

  it('0: done', async () => {
    const { code, stdout } = await cellarstream(['--version']);
    expect([code, stdout.trim()]).toEqual([0, version]);
  });

  it('1: failed while running, in one line', async () => {
    const sandbox = await startSandbox({ records: { orders: 10 } });
    const settings = { API_BASE_URL: sandbox.url, API_KEY: 'wrong' };
    const { code, stderr } = await cellarstream(['peek', 'orders'], settings);
    await sandbox.close();
    expect(code).toBe(1);
    expect(stderr).toMatch(/^cellarstream: the login at \S+ refused the API key.*\n$/);
  });

  it.each([[['no-such-command']], [['run', '--no-such-flag']], [['peek', 'no-such-resource']]])(
    '2: wrong usage: %s',
    async (args) => {
      expect((await cellarstream(args)).code).toBe(2);
    },
  );

  it('2: wrong settings, all named at once', async () => {
    const { code, stderr } = await cellarstream(['run'], { PAGE_SIZE: '0' });
    expect(code).toBe(2);
    for (const name of [
      'API_BASE_URL',
      'API_KEY',
      'KAFKA_BROKERS',
      'SCHEMA_REGISTRY_URL',
      'PAGE_SIZE',
    ]) {
      expect(stderr).toContain(name);
    }
  });
});

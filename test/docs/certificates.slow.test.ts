import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KeyTally } from '../../src/schemas/events/key-tally.ts';
import type { TallyText } from '../../src/schemas/events/key-tally.ts';
import { Chance } from '../support/chance.ts';
import { namedProgram } from './code-blocks.ts';

const recipe = (name: string) => namedProgram('docs/certificates.md', name).code;

/** A copy: keys of every kind, and sequences as they may be. */
const ROWS = (() => {
  const chance = new Chance(21);
  const keys = ['100234', 'ключ', '🍷', 'a "b", c', "it's", '', ' ', 'a\\b'];
  const more = Array.from({ length: 2_000 }, (_, n) => `${100_000 + n}`);
  return [...new Set([...keys, ...more])].map((key) => ({
    key,
    sequence: chance.is(0.01) ? Number.MAX_SAFE_INTEGER - chance.below(9) : chance.below(1e6),
  }));
})();

function tallyOf(rows: typeof ROWS): TallyText {
  const tally = new KeyTally();
  for (const { key, sequence } of rows) tally.add(key, sequence);
  return tally.toJSON();
}

const CSV = [
  'key,sequence',
  ...ROWS.map(({ key, sequence }) => `"${key.replaceAll('"', '""')}",${sequence}`),
];

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'cellarstream-certificates-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** What a program prints; it must not complain. */
function printed(program: string, args: readonly string[], how: object = {}): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', ...how });
  expect([program, status, status === 0 ? '' : stderr]).toEqual([program, 0, '']);
  return stdout;
}

const asText = ({ records, digest }: TallyText) => `${records} ${digest}\n`;

describe('the recipes for count and digest give what the service has', () => {
  it('in Python', () => {
    const file = join(folder(), 'copy.csv');
    writeFileSync(file, `${CSV.join('\n')}\n`);
    expect(printed('python3', ['-c', recipe('python'), file])).toBe(asText(tallyOf(ROWS)));
  });

  it('in SQLite', () => {
    const database = join(folder(), 'copy.db');
    const fill = [
      'import json, sqlite3, sys',
      'database = sqlite3.connect(sys.argv[1])',
      'database.execute("CREATE TABLE orders_copy (key TEXT PRIMARY KEY, sequence INTEGER)")',
      'rows = [(row["key"], row["sequence"]) for row in json.load(sys.stdin)]',
      'database.executemany("INSERT INTO orders_copy VALUES (?, ?)", rows)',
      'database.commit()',
    ].join('\n');
    printed('python3', ['-c', fill, database], { input: JSON.stringify(ROWS) });
    expect(printed('python3', ['-c', recipe('sqlite'), database])).toBe(asText(tallyOf(ROWS)));
  });

  it('in JavaScript', async () => {
    const file = join(folder(), 'digest.mjs');
    writeFileSync(file, recipe('javascript'));
    const { countAndDigest } = (await import(pathToFileURL(file).href)) as {
      countAndDigest: (rows: typeof ROWS) => TallyText;
    };
    expect(countAndDigest(ROWS)).toEqual(tallyOf(ROWS));
    expect(countAndDigest([])).toEqual(tallyOf([]));
  });

  it('in PostgreSQL', { timeout: 120_000 }, ({ skip }) => {
    const programs = ['initdb', 'postgres'].map(postgresProgram);
    const [initdb, postgres] = programs;
    if (initdb === undefined || postgres === undefined) {
      console.warn(
        'SKIPPED: the recipe for PostgreSQL, as neither PATH nor /usr/lib/postgresql has it',
      );
      return skip();
    }
    const data = folder();
    const user = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}; // it refuses root
    if ('uid' in user) chownSync(data, NOBODY, NOBODY);
    const how = { ...user, cwd: data, env: { ...process.env, LC_ALL: 'C' } };
    const cluster = join(data, 'cluster');
    printed(initdb, ['--no-sync', '--encoding=UTF8', '--username=test', '-D', cluster], how);

    const asked = (rows: typeof ROWS) => {
      const file = join(data, 'copy.csv');
      writeFileSync(file, `${CSV.slice(0, 1 + rows.length).join('\n')}\n`);
      const input = [
        'DROP TABLE IF EXISTS orders_copy',
        'CREATE TABLE orders_copy (key text PRIMARY KEY, sequence bigint)',
        `COPY orders_copy FROM '${file}' CSV HEADER`,
        recipe('postgresql').trim().replace(/;$/, ''),
      ];
      // One server without a network; a statement ends with a semicolon and an empty line.
      const args = ['--single', '-j', '-F', '-D', cluster, 'postgres'];
      const answer = printed(postgres, args, { ...how, input: input.join(';\n\n') + ';\n\n' });
      const field = (name: string) => new RegExp(`${name} = "(.*?)"`).exec(answer)?.[1];
      return { records: Number(field('records')), digest: field('digest') };
    };
    for (const rows of [ROWS, ROWS.slice(0, 1), []]) expect(asked(rows)).toEqual(tallyOf(rows));
  });
});

const NOBODY = 65_534;

/** Its own, on the PATH, or where Debian has it; undefined where there is none. */
function postgresProgram(name: string): string | undefined {
  const script = `command -v ${name} || ls /usr/lib/postgresql/*/bin/${name} | tail -n 1`;
  const { stdout } = spawnSync('bash', ['-c', script], { encoding: 'utf8' });
  return stdout.trim() || undefined;
}

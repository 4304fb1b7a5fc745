import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { coverageOf, IN_EACH_RUN, IN_SOME_RUNS } from './golden-coverage.ts';
import { firstDifference, hashOf, LINES_PER_MARK, listingsOf, readable } from './golden-listing.ts';
import type { GoldenHash, Listing } from './golden-listing.ts';
import { goldenRun } from './golden-run.ts';
import type { GoldenRun } from './golden-run.ts';

type Hashes = Record<string, Record<string, GoldenHash>>;

const SEEDS = 20;
const FILE = new URL('./hashes.json', import.meta.url);
/** `UPDATE_GOLDEN=1` writes the hashes of this version instead of comparing with them. */
const isUpdate = Boolean(process.env.UPDATE_GOLDEN);
/** Folder for the listings of all topics, by which the runs of two versions are compared line by line. Default: only those that differ. */
const listingsFolder = process.env.GOLDEN_LISTINGS;
let temporaryFolder = listingsFolder;
/** `GOLDEN_SEED=7` runs one seed alone. */
const only = process.env.GOLDEN_SEED;
/** How many of a part's runs at least contain each of {@link IN_SOME_RUNS}. */
const SOME = 2;
/** Longest line of a listing in an error, in characters. */
const LONGEST_LINE = 600;

/**
 * Compares all bytes that the service writes in 20 runs with those of the version that wrote `hashes.json`. A change that is meant to
 * change no bytes, such as a refactoring, leaves every hash as it is.
 *
 * @param part Which of the `parts` files of this test.
 */
export function golden(part: number, parts: number): void {
  it(`writes the same bytes as before: part ${part} of ${parts}`, async () => {
    const all = Array.from({ length: SEEDS }, (_, k) => k + 1);
    const share = all.slice(((part - 1) * SEEDS) / parts, (part * SEEDS) / parts);
    const compared = share.filter((seed) => !only || seed === Number(only));
    const written = part === 1 ? all : []; // the first part writes the whole file
    const seeds = isUpdate ? written : compared;
    if (seeds.length === 0) return;
    const found: Hashes = {};
    const runsWith = new Map<string, number>();
    const differences: string[] = [];
    const expected = isUpdate ? {} : (JSON.parse(readFileSync(FILE, 'utf8')) as Hashes);
    for (const seed of seeds) {
      const run = await goldenRun(seed);
      const listings = listingsOf(run);
      found[seed] = Object.fromEntries([...listings].map(([name, one]) => [name, hashOf(one)]));
      if (listingsFolder) for (const [name, one] of listings) save(listingsFolder, seed, name, one);
      const counts = coverageOf(run);
      expect(IN_EACH_RUN.filter((what) => !counts.get(what))).toEqual([]);
      for (const [what, count] of counts)
        if (count > 0) runsWith.set(what, (runsWith.get(what) ?? 0) + 1);
      if (!isUpdate) differences.push(...differencesOf(run, seed, listings, expected[seed] ?? {}));
    }
    const rare = IN_SOME_RUNS.filter((what) => (runsWith.get(what) ?? 0) < SOME);
    expect(only ? [] : rare).toEqual([]);
    if (isUpdate) writeFileSync(FILE, `${JSON.stringify(found, undefined, 2)}\n`);
    expect(differences.join('\n\n')).toBe('');
  }, 300_000);
}

/** Describes each topic of a run that differs from the expected one. */
function differencesOf(
  run: GoldenRun,
  seed: number,
  listings: ReadonlyMap<string, Listing>,
  expected: Readonly<Record<string, GoldenHash>>,
): string[] {
  const differences: string[] = [];
  const missing = Object.keys(expected).filter((name) => !listings.has(name));
  if (missing.length > 0) differences.push(`seed ${seed}: ${missing.join(', ')} is missing`);
  for (const [name, listing] of listings) {
    const before = expected[name];
    if (!before) {
      differences.push(`seed ${seed}: ${name} is not in hashes.json`);
      continue;
    }
    const { entries, sha256 } = hashOf(listing);
    if (sha256 === before.sha256) continue;
    const from = firstDifference(listing, before);
    temporaryFolder ??= mkdtempSync(join(tmpdir(), 'golden-'));
    const path = save(temporaryFolder, seed, name, listing);
    const lines = listing.lines.slice(from, from + LINES_PER_MARK);
    differences.push(
      [
        `seed ${seed}: ${name} differs, first in one of the lines ${from + 1} to ${from + LINES_PER_MARK} of ${path} (${entries} entries, before ${before.entries}):`,
        ...lines.map((line) => readable(line, run).slice(0, LONGEST_LINE)),
      ].join('\n'),
    );
  }
  return differences;
}

/** Writes a listing to a file, and returns its path. */
function save(folder: string, seed: number, name: string, { lines }: Listing): string {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${seed} ${name}.txt`);
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''));
  return path;
}

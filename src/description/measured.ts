// Results of `check --measure` in a file, and the claims that they refute.

import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { z } from 'zod';
import { CellarstreamError } from '../core/errors.ts';
import { CLAIMS, expected, measuredFormat } from './format.ts';
import type { Measured } from './format.ts';

const measuredFile = z
  .strictObject({ measured: measuredFormat })
  .describe('the output of check --measure: measured');

const ADVICE: Readonly<Record<(typeof CLAIMS)[number], string>> = {
  key: 'name the fields that identify a record',
  order: 'sort by the key in query, such as sort: id',
  limit: 'set it to the number of records that the API returned',
  paging: 'describe a kind of paging that the API supports',
  more: 'correct its place in the response, or remove it from the description',
  total: 'correct its place in the response, or remove it from the description',
  dates: 'correct the parameters, or leave dates out',
  updated: 'set it to the field with the modification time, or correct times',
  one: 'correct path, query or gone in it, or remove it from the description',
};

/**
 * Reads the output of `check --measure` from the file that `MEASURED` names.
 *
 * @throws CellarstreamError `SETTINGS`, with one line for each mistake.
 */
export function readMeasured(path: string): Measured {
  let content: unknown;
  try {
    content = parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason =
      code !== undefined && 'errno' in (error as object) ? code : message.split('\n')[0];
    throw settingsError([`cannot be read: ${reason}`]);
  }
  const { data, error } = measuredFile.safeParse(content, {
    error: (issue) =>
      expected((issue.inst as z.ZodType | undefined)?.description ?? 'another value', issue.input),
  });
  if (data) return data.measured;
  throw settingsError(error.issues.map((each) => `${each.path.join('.')} ${each.message}`.trim()));
}

/**
 * Returns a line for each claim that `check --measure` refuted: the list, the claim and what to do.
 *
 * @param lists Names of the lists that are read. Results for other lists are ignored.
 */
export function refutations(
  { date, lists: measured }: Measured,
  lists: readonly string[],
): string[] {
  return lists.flatMap((name) =>
    (Object.hasOwn(measured, name) ? (measured[name]!.refuted ?? []) : []).map(
      (claim) =>
        `lists.${name}: ${claim} was refuted on ${date}; ${ADVICE[claim]}, and run check --measure again`,
    ),
  );
}

function settingsError(problems: readonly string[]): CellarstreamError {
  return new CellarstreamError(
    'SETTINGS',
    problems
      .map((problem) => `MEASURED ${problem}; write the file with \`cellarstream check --measure\``)
      .join('\n'),
  );
}

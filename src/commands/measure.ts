import { setTimeout as pause } from 'node:timers/promises';
import { listNamed } from '../description/description.ts';
import type { ApiDescription, ListDescription } from '../description/description.ts';
import type { Measured } from '../description/format.ts';
import type { Resource } from '../config/config.ts';
import type { SettingsSource } from '../config/load-config.ts';
import { measuredOf } from '../measure/measure-list.ts';
import type { Measurement } from '../measure/replies.ts';
import { measureApi } from './check-api.ts';
import { findingsTable } from './findings.ts';
import { oneAccount } from './one-account.ts';
import { printLine, stdoutColors, tableLines } from './terminal.ts';

/**
 * `cellarstream check --measure`: tests by read-only requests whether the API behaves as its description says. Prints a file for the
 * setting `MEASURED`, with the findings as YAML comments. Resolves to whether every list was measured and nothing in the description was
 * refuted.
 */
export async function measureCommand(source: SettingsSource, account?: string): Promise<boolean> {
  const config = oneAccount(source, account, ['api']);
  printLine('measuring; this takes about a minute');
  const { findings, lists } = await measureApi(config, pause);
  const comment = (text: string) => text.replaceAll(/^(?=.)/gm, '# ');
  process.stdout.write(comment(findingsTable(findings)));
  if (lists.size === 0) return false;
  process.stdout.write(comment(measurementTable(lists, config.description)));
  const measured = measuredOf(lists, new Date().toISOString().slice(0, 10));
  process.stdout.write(measuredLines(measured));
  const isRefuted = Object.values(measured.lists).some(({ refuted = [] }) => refuted.length > 0);
  return findings.every(({ fine }) => fine) && !isRefuted;
}

function measurementTable(
  lists: ReadonlyMap<Resource, readonly Measurement[]>,
  description: ApiDescription,
): string {
  const { green, yellow, red, dim } = stdoutColors();
  const colors = { 'not refuted': green, warning: yellow, refuted: red, 'not measured': dim };
  const measurements = [...lists].flatMap(([list, all]) => all.map((each) => ({ list, ...each })));
  const rows = measurements.map(({ list, claim, verdict, measured }) => {
    return [list, claimText(listNamed(description, list), claim), verdict, measured];
  });
  const lines = tableLines(rows, 2, (text, row) => colors[measurements[row]!.verdict](text));
  return lines.map((line) => `${line}\n`).join('');
}

function measuredLines({ date, lists }: Measured): string {
  const ofLists = Object.entries(lists).map(([name, { refuted = [], notRefuted = [] }]) => {
    return `    ${name}: { refuted: [${refuted.join(', ')}], notRefuted: [${notRefuted.join(', ')}] }`;
  });
  return ['measured:', `  date: ${date}`, '  lists:', ...ofLists, ''].join('\n');
}

/**
 * Returns the name of a claim (a statement in a list's description that `check --measure` tests). Some names are followed by the value in
 * the description, as in `limit 1000`.
 */
function claimText(list: ListDescription, claim: Measurement['claim']): string {
  const values = {
    limit: list.limit ?? '',
    paging: list.paging,
    updated: list.updated.join(' or '),
  };
  return claim in values ? `${claim} ${values[claim as keyof typeof values]}`.trim() : claim;
}

import { basename } from 'node:path';
import type { Config } from '../config/config.ts';
import { CellarstreamError } from '../core/errors.ts';
import { readMeasured, refutations } from '../description/measured.ts';

/**
 * Throws if a measurement has refuted a statement of the description about one of the lists `resources`. The measurement is read from the
 * file that `MEASURED` names or, without that setting, from the description.
 *
 * @throws CellarstreamError `SETTINGS`, with one line for each refuted statement.
 */
export function expectNotRefuted({
  measuredFile,
  description,
  resources,
}: Pick<Config, 'measuredFile' | 'description' | 'resources'>): void {
  const measured = measuredFile === undefined ? description.measured : readMeasured(measuredFile);
  if (!measured) return;
  const file =
    measuredFile === undefined ? 'API_DESCRIPTION' : `MEASURED ${basename(measuredFile)}`;
  const lines = refutations(measured, resources).map((line) => `${file}: ${line}`);
  if (lines.length === 0) return;
  lines.push('To start despite refuted claims, use `cellarstream run --believe`');
  throw new CellarstreamError('SETTINGS', lines.join('\n'));
}

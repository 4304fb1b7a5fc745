import { expect, it } from 'vitest';
import { logSettings } from '../../src/commands/log-settings.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { lineLogger } from '../support/line-logger.ts';

it('tells of each setting that may be a slip, by its name', () => {
  const lines: unknown[] = [];
  const warn = (fields: object, text: string) => lines.push([fields, text]);
  const env = { PII_MASK: 'orders.emial,orders.phone', PII_DROP: 'customers.emial' };
  const source = { env, cwd: import.meta.dirname };
  logSettings(lineLogger({ warn }), loadConfig(source), source);
  expect(lines).toEqual([
    [
      { event: 'setting', setting: 'PII_MASK' },
      expect.stringMatching(/^PII_MASK names orders\.emial, which is no field of the schema/),
    ],
  ]);
});

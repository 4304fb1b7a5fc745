import { describe, expect, it } from 'vitest';
import { logReadiness, logSettings } from '../../src/commands/service-log.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import type { Readiness } from '../../src/ops/status/causes.ts';
import { virtualTime } from '../support/virtual-time.ts';
import { lineLogger } from '../support/line-logger.ts';

const READY: Readiness = { ready: true, reasons: [], causes: [] };
const waiting = (cause: 'kafka' | 'registry', text: string): Readiness => ({
  ready: false,
  reasons: [text],
  causes: [cause],
});

describe('logReadiness', () => {
  it('says a change in a line, and what only goes on not at all', () => {
    const lines: unknown[] = [];
    const line = (level: string) => (fields: object, text: string) =>
      lines.push({ level, ...fields, text });
    const logger = lineLogger({ info: line('info'), warn: line('warn') });
    let now: Readiness = waiting('kafka', 'a');
    const scheduler = virtualTime();
    scheduler.run(() => {
      const telling = logReadiness(logger, () => now, scheduler);
      const at = (ms: number, then: Readiness) => void scheduler.schedule(() => (now = then), ms);
      at(1_100, waiting('kafka', 'b'));
      at(3_100, READY);
      at(5_100, waiting('registry', 'c'));
      at(5_900, READY); // a moment
      at(7_100, waiting('registry', 'd'));
      at(8_100, waiting('kafka', 'e'));
      scheduler.schedule(() => telling.unsubscribe(), 10_500);
    });
    expect(lines).toEqual([
      { level: 'warn', event: 'readiness', ready: false, reasons: ['a'], text: 'not ready' },
      { level: 'info', event: 'readiness', ready: true, reasons: [], text: 'ready' },
      { level: 'warn', event: 'readiness', ready: false, reasons: ['d'], text: 'not ready' },
      { level: 'warn', event: 'readiness', ready: false, reasons: ['e'], text: 'not ready' },
    ]);
  });
});

it('tells of each setting that may be a slip, by its name', () => {
  const lines: unknown[] = [];
  const warn = (fields: object, text: string) => lines.push([fields, text]);
  const env = { PII_MASK: 'orders.emial,orders.phone', PII_DROP: 'customers.emial' };
  const source = { env, cwd: import.meta.dirname };
  logSettings(lineLogger({ warn }), loadConfig(source), source);
  expect(lines).toEqual([
    [
      { event: 'setting', setting: 'PII_MASK' },
      expect.stringMatching(/^PII_MASK names orders\.emial, which is not a field of the schema/),
    ],
  ]);
});

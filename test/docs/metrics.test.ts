import { expect, it } from 'vitest';
import { FLEET_LABELS, FLEET_METRICS } from '../../src/ops/metrics/fleet-metrics.ts';
import { LABELS } from '../../src/ops/metrics/metric-labels.ts';
import { METRICS } from '../../src/ops/metrics/metric-table.ts';
import type { Metric } from '../../src/ops/metrics/metric-table.ts';
import { metricsText } from './metrics-text.ts';
import { pathOf } from './texts.ts';

const TABLE = Object.values<Metric>(METRICS);
const OF_FLEET = Object.values(FLEET_METRICS);
const ALL = [...TABLE, ...OF_FLEET];

it('docs/metrics.md is what the table of metrics makes of it', async () => {
  // As a snapshot, `npm run docs` can write it.
  await expect(metricsText()).toMatchFileSnapshot(pathOf('docs/metrics.md'));
});

it('each metric is named as Prometheus would have it', () => {
  for (const { name, type, help } of ALL) {
    expect(name).toMatch(/^cellarstream_[a-z]+(_[a-z]+)*$/);
    expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    if (type === 'histogram') expect(name).toMatch(/_seconds$/);
    expect(name).not.toMatch(/_(ms|millis|minutes|kb)\b|_ms_/);
    expect(help).toMatch(/\.$/);
  }
  expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length);
});

it('each label is of some metric, and its values are said', () => {
  const used = new Set(TABLE.flatMap(({ labels }) => labels));
  expect(Object.keys(LABELS).sort()).toEqual(['account', ...used].sort());
  const usedOfFleet = new Set(OF_FLEET.flatMap(({ labels }): readonly string[] => labels));
  expect(Object.keys(FLEET_LABELS).sort()).toEqual([...usedOfFleet].sort());
});

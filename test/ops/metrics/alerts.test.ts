import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { WINE } from '../../../src/description/wine/wine.ts';
import { FLEET_LABELS, FLEET_METRICS } from '../../../src/ops/metrics/fleet-metrics.ts';
import type { FleetMetric } from '../../../src/ops/metrics/fleet-metrics.ts';
import { boundedLabel, labelValues, OTHER } from '../../../src/ops/metrics/metric-labels.ts';
import { METRICS } from '../../../src/ops/metrics/metric-table.ts';
import type { Metric } from '../../../src/ops/metrics/metric-table.ts';
import { pathOf, text } from '../../docs/texts.ts';
import { parsePromql } from './promql.ts';
import type { Selector } from './promql.ts';
import { PROCESS_METRICS } from './process-metrics.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook_url', string>>;
}
interface Target {
  readonly expr: string;
  readonly legendFormat: string;
}
interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly description?: string;
  readonly gridPos: Readonly<Record<'h' | 'w' | 'x' | 'y', number>>;
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly (Target & { readonly datasource: { readonly uid: string } })[];
}
interface Variable {
  readonly name: string;
  readonly type: string;
  readonly definition?: string;
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly Variable[] };
}

const RULES_FILE = 'deploy/prometheus/alerts.yml';
const { groups } = parse(text(RULES_FILE)) as { groups: { rules: Rule[] }[] };
const RULES = groups.flatMap(({ rules }) => rules);
const DASHBOARD = JSON.parse(text('deploy/grafana/cellarstream.json')) as Dashboard;
const TARGETS = DASHBOARD.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat })),
);

/** What Prometheus adds, and where it comes from. */
const ADDED = ['job', 'instance'];
/** Labels of metrics by their names, those of a histogram's parts too. */
const KNOWN = new Map<string, readonly string[]>([
  ['up', []],
  ['ALERTS', ['alertname', 'alertstate']],
]);
for (const [name, type] of PROCESS_METRICS) {
  const labels = ['account', ...(name === 'nodejs_gc_duration_seconds' ? ['kind'] : [])];
  for (const part of partsOf(name, type)) KNOWN.set(part, labels);
}
for (const { name, type, labels } of Object.values<Metric>(METRICS)) {
  for (const part of partsOf(name, type)) {
    KNOWN.set(part, ['account', ...labels, ...(part.endsWith('_bucket') ? ['le'] : [])]);
  }
}
for (const { name, type, labels } of Object.values<FleetMetric>(FLEET_METRICS)) {
  for (const part of partsOf(name, type)) {
    KNOWN.set(part, [...labels, ...(part.endsWith('_bucket') ? ['le'] : [])]);
  }
}

function partsOf(name: string, type: string): string[] {
  return type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
}

/** Grafana's variables, as they may come out. */
function filledIn(expression: string): string {
  return expression.replaceAll('$__rate_interval', '1m').replace(/\$(\w+)/g, '.*');
}

/** What is not right with an expression: no PromQL, or of what no service tells. */
function complaints(expression: string): string[] {
  const { errors, selectors, groupings } = parsePromql(filledIn(expression));
  const all = [...errors, ...selectors.flatMap(complaintsOf)];
  const labels = new Set([...ADDED, ...selectors.flatMap(({ metric }) => KNOWN.get(metric) ?? [])]);
  for (const label of groupings) if (!labels.has(label)) all.push(`no label ${label} in it`);
  return all;
}

function complaintsOf({ metric, matchers }: Selector): string[] {
  const labels = KNOWN.get(metric);
  if (!labels) return [`no metric ${metric}`];
  return matchers.flatMap(({ label, operator, value }) => {
    if (ADDED.includes(label)) return [];
    if (!labels.includes(label)) return [`${metric} has no label ${label}`];
    const texts = operator.includes('~') ? value.split('|') : [value];
    return texts
      .filter((one) => one !== '.*' && !mayBe(label, one))
      .map((one) => `${metric} is never ${label}=${one}`);
  });
}

/** Whether the label may have this value. */
function mayBe(label: string, value: string): boolean {
  if (label === 'state') return FLEET_LABELS.state.values.some((state) => state === value);
  return boundedLabel(labelValues(WINE), label, value) !== OTHER;
}

describe('complaints', () => {
  it.each([
    ['sum by (account (up)', /^at \d+/],
    ['rate(cellarstream_nothing_total[5m])', 'no metric cellarstream_nothing_total'],
    ['cellarstream_ready{resource="orders"}', 'cellarstream_ready has no label resource'],
    ['cellarstream_not_ready{cause="moon"}', 'cellarstream_not_ready is never cause=moon'],
    ['cellarstream_not_ready{cause=~"api|moon"}', 'cellarstream_not_ready is never cause=moon'],
    ['sum by (lane) (cellarstream_ready)', 'no label lane in it'],
    ['sum by (le) (cellarstream_transactions_total)', 'no label le in it'],
    [
      'cellarstream_fleet_accounts{state="moon"}',
      'cellarstream_fleet_accounts is never state=moon',
    ],
    ['sum by (account) (cellarstream_fleet_fenced_total)', 'no label account in it'],
  ])('are made of %s', (expression, complaint) => {
    expect(complaints(expression).join()).toMatch(complaint);
  });
});

describe('alerts.yml', () => {
  it.each(RULES.map((rule) => [rule.alert, rule] as const))(
    '%s asks for what is told',
    (_, { expr }) => {
      expect(complaints(expr)).toEqual([]);
    },
  );

  it.each(RULES.map((rule) => [rule.alert, rule] as const))(
    '%s says what, how bad, and what to do',
    (alert, rule) => {
      expect(alert).toMatch(/^Cellarstream([A-Z][a-z]+)+$/);
      expect(['critical', 'warning']).toContain(rule.labels.severity);
      expect(rule.annotations.summary).not.toBe('');
      expect(rule.annotations.description).not.toBe('');
      expect(rule.annotations.runbook_url).toBe(`docs/runbook.md#${alert.toLowerCase()}`);
      // Lasting states have a `for`; counts have their range.
      expect(rule.for !== undefined || /increase\(|changes\(/.test(rule.expr)).toBe(true);
      const labels = [...JSON.stringify(rule.annotations).matchAll(/\$labels\.(\w+)/g)];
      const { selectors } = parsePromql(rule.expr);
      const known = selectors.flatMap(({ metric }) => KNOWN.get(metric) ?? []);
      for (const [, label] of labels) expect([...known, ...ADDED]).toContain(label);
    },
  );

  it('and the runbook are about the same alerts, in the same order', () => {
    const headings = [...text('docs/runbook.md').matchAll(/^### (Cellarstream\w+)$/gm)];
    expect(headings.map(([, alert]) => alert)).toEqual(RULES.map(({ alert }) => alert));
  });
});

describe('docs/fleet.md', () => {
  const blocks = [...text('docs/fleet.md').matchAll(/```promql\n(.*?)```/gs)];
  const lines = blocks.flatMap(([, block]) => block!.split('\n'));
  const expressions = lines.filter((line) => line !== '' && !line.startsWith('#'));

  it.each(expressions)('asks for what is told: %s', (expression) => {
    expect(complaints(expression)).toEqual([]);
  });
});

describe('the dashboard', () => {
  it.each(TARGETS.map((target) => [`${target.title}: ${target.expr}`, target] as const))(
    'asks for what is told: %s',
    (_, { expr, legendFormat }) => {
      expect(complaints(expr)).toEqual([]);
      const { selectors } = parsePromql(filledIn(expr));
      const known = selectors.flatMap(({ metric }) => KNOWN.get(metric) ?? []);
      for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
        expect([...known, ...ADDED]).toContain(label);
    },
  );

  it('uses the variables that it has, and asks no data source but the chosen one', () => {
    const { list } = DASHBOARD.templating;
    const names = list.map(({ name }) => name);
    expect(names).toEqual(['datasource', 'account', 'instance', 'resource']);
    for (const { definition = '' } of list) {
      for (const [, metric] of definition.matchAll(/label_values\((\w+)/g))
        expect([...KNOWN.keys()]).toContain(metric);
    }
    const used = [...JSON.stringify(DASHBOARD.panels).matchAll(/\$\{?([a-z_]+)/g)].map(
      ([, name]) => name,
    );
    expect([...new Set(used)].sort()).toEqual([...names, '__rate_interval'].sort());
    const sources = DASHBOARD.panels.flatMap(({ datasource, targets = [] }) => [
      datasource,
      ...targets.map((target) => target.datasource),
    ]);
    expect(new Set(sources.flatMap((source) => source?.uid ?? []))).toEqual(
      new Set(['${datasource}']),
    );
  });

  it('has panels that say what they show, each in a place of its own', () => {
    const places = new Set<string>();
    for (const { id, title, type, description, gridPos } of DASHBOARD.panels) {
      if (type !== 'row')
        expect([title, description]).toEqual([title, expect.stringMatching(/\.$/)]);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          const place = `${x}/${y}`;
          expect([id, places.has(place)]).toEqual([id, false]);
          places.add(place);
        }
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    }
    const ids = DASHBOARD.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('or an alert shows every metric of the service', () => {
    const shown = new Set(
      [...TARGETS, ...RULES].flatMap(({ expr }) =>
        parsePromql(filledIn(expr)).selectors.map(({ metric }) => metric),
      ),
    );
    const all = [...Object.values<Metric>(METRICS), ...Object.values<FleetMetric>(FLEET_METRICS)];
    const hidden = all.filter(
      ({ name, type }) => !partsOf(name, type).some((part) => shown.has(part)),
    );
    // Numbers of schemas are nothing to draw.
    expect(hidden.map(({ name }) => name)).toEqual(['cellarstream_schema_id']);
  });
});

describe('promtool', () => {
  const isThere = spawnSync('promtool', ['--version']).status === 0;
  beforeAll(() => {
    if (!isThere)
      console.warn('promtool is not on the PATH: alerts.yml was parsed, not checked by it');
  });
  const promtool = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };

  it.runIf(isThere)('finds nothing wrong with the rules', () => {
    const { status, said } = promtool('check', 'rules', pathOf(RULES_FILE));
    expect([status, said]).toEqual([0, expect.stringContaining(`${RULES.length} rules found`)]);
  });

  it.runIf(isThere)('sees each alert fire when it is time, and none of a healthy service', () => {
    const { status, said } = promtool(
      'test',
      'rules',
      pathOf('test/ops/metrics/alerts.promtest.yml'),
    );
    expect([status, said]).toEqual([0, expect.stringContaining('SUCCESS')]);
    for (const { alert } of RULES)
      expect(text('test/ops/metrics/alerts.promtest.yml')).toContain(`"${alert}"`);
  });
});

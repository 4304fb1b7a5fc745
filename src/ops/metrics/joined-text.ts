import { setImmediate } from 'node:timers/promises';
import type { Registry } from 'prom-client';

/** So long, ms, the pipeline may wait for its turn. */
const TURN_MS = 5;

/**
 * The metrics of several registries as one text: each metric's series together, as the format wants them, in the order of
 * the registries. It gives way to whatever else waits: a hundred accounts have a hundred thousand series.
 */
export async function joinedText(registries: readonly Registry[]): Promise<string> {
  const names = new Set(
    registries.flatMap((registry) => registry.getMetricsAsArray().map(({ name }) => name)),
  );
  const texts: string[] = [];
  let turnEnds = performance.now() + TURN_MS;
  for (const name of names) {
    const parts: string[] = [];
    for (const registry of registries) {
      if (registry.getSingleMetric(name) === undefined) continue;
      const text = await registry.getSingleMetricAsString(name);
      const part = parts.length === 0 ? text : withoutHead(text);
      if (part !== '') parts.push(part);
      if (performance.now() < turnEnds) continue;
      await setImmediate();
      turnEnds = performance.now() + TURN_MS;
    }
    texts.push(parts.join('\n'));
  }
  return `${texts.join('\n\n')}\n`;
}

/** Without the two lines that say what the metric is. */
function withoutHead(text: string): string {
  const [, , ...series] = text.split('\n');
  return series.join('\n');
}

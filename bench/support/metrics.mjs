// @ts-check
// What the service tells at `/metrics`, as numbers.

/** @typedef {readonly { readonly name: string, readonly labels: string, readonly value: number }[]} Metrics */

/** @param {string} url Of the status port. @returns {Promise<Metrics>} */
export async function readMetrics(url) {
  const text = await (await fetch(`${url}/metrics`)).text();
  return [...text.matchAll(/^(\w+)(\{.*\})? (\S+)$/gm)].map(
    ([, name = '', labels = '', value]) => ({
      name,
      labels,
      value: Number(value),
    }),
  );
}

/**
 * A metric, all of its series together.
 *
 * @param {Metrics} metrics
 * @param {string} name
 * @param {Readonly<Record<string, string>>} [labels] Only the series that have these.
 */
export function metric(metrics, name, labels = {}) {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return metrics
    .filter(
      (series) => series.name === name && wanted.every((label) => series.labels.includes(label)),
    )
    .reduce((sum, { value }) => sum + value, 0);
}

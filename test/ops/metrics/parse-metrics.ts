/** A line of the text format of Prometheus. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface ParsedMetrics {
  readonly samples: readonly Sample[];
  /** By the name of the metric. */
  readonly types: ReadonlyMap<string, string>;
  /** Of the one series with exactly these labels; undefined when it is not there. */
  readonly value: (name: string, labels: Readonly<Record<string, string>>) => number | undefined;
}

const SAMPLE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/gy;

/**
 * The text format of Prometheus, 0.0.4.
 *
 * @throws SyntaxError at a line that is none of it, or a series that is there twice.
 */
export function parseMetrics(text: string): ParsedMetrics {
  const types = new Map<string, string>();
  const samples = new Map<string, Sample>();
  for (const line of text.split('\n')) {
    const [, typed, type] = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line) ?? [];
    if (typed !== undefined && type !== undefined) types.set(typed, type);
    if (line === '' || line.startsWith('# TYPE ') || line.startsWith('# HELP ')) continue;
    const sample = sampleOf(line);
    const identity = identityOf(sample.name, sample.labels);
    if (samples.has(identity)) throw new SyntaxError(`twice: ${line}`);
    samples.set(identity, sample);
  }
  return {
    samples: [...samples.values()],
    types,
    value: (name, labels) => samples.get(identityOf(name, labels))?.value,
  };
}

function sampleOf(line: string): Sample {
  const [, name, inner = '', text] = SAMPLE.exec(line) ?? [];
  const labels = [...inner.matchAll(LABEL)];
  const value = text === 'Nan' || text === 'NaN' ? NaN : Number(text);
  const isWhole = labels.reduce((length, [label]) => length + label.length, 0) === inner.length;
  if (name === undefined || !isWhole || (Number.isNaN(value) && !/^nan$/i.test(text ?? ''))) {
    throw new SyntaxError(`no metric: ${line}`);
  }
  return { name, value, labels: Object.fromEntries(labels.map(([, key, of]) => [key!, of!])) };
}

function identityOf(name: string, labels: Readonly<Record<string, string>>): string {
  return JSON.stringify([name, Object.entries(labels).sort()]);
}

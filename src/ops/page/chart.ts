import uPlot from 'uplot';
import { html, setAttributes } from './dom.ts';

interface Line {
  /** The CSS variable of its colour. */
  readonly colour: string;
  /** Whether what is below it is filled. */
  readonly filled?: boolean;
}

interface ChartOptions {
  readonly lines: readonly Line[];
  /** The top of the chart is never below this value. */
  readonly leastTop: number;
  /** Small values beside large ones stay visible. Default: in proportion. */
  readonly compressed?: boolean;
}

const HEIGHT = 44;
const charts = new Set<uPlot>();

/** A small chart without axes: what it shows is said beside it. */
export function chart({ lines, leastTop, compressed = false }: ChartOptions) {
  const element = html('div', { class: 'chart', role: 'img' });
  const colour = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
  let shown = '';
  const plot = new uPlot(
    {
      width: 160,
      height: HEIGHT,
      padding: [3, 0, 1, 0],
      legend: { show: false },
      cursor: { show: false },
      axes: [{ show: false }, { show: false }],
      scales: {
        x: { time: false },
        y: {
          ...(compressed && { distr: 4 as const }),
          range: (_, _least, most) => [0, Math.max(leastTop, most ?? 0) * 1.05],
        },
      },
      series: [
        {},
        ...lines.map((line) => ({
          stroke: () => colour(line.colour),
          width: 1.5,
          ...(line.filled && { fill: () => `${colour(line.colour)}2e` }),
          points: { show: isAlone, size: 4, fill: () => colour(line.colour) },
          spanGaps: true,
        })),
      ],
    },
    [[], ...lines.map(() => [])],
    element,
  );
  charts.add(plot);
  new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: HEIGHT });
  }).observe(element);
  return {
    element,
    /** Values of each line by time; `text` says what they are to whoever can't see them. */
    update: (
      times: readonly number[],
      values: readonly (readonly (number | null)[])[],
      text: string,
    ): void => {
      setAttributes(element, { 'aria-label': text });
      const data = JSON.stringify([times, values]);
      if (data === shown) return;
      shown = data;
      plot.setData([times, ...values] as uPlot.AlignedData);
    },
  };
}

/** A value without neighbours makes no line: it is shown as a point. */
function isAlone(plot: uPlot, line: number): boolean {
  return Array.from(plot.data[line]!).filter((value) => value !== null).length < 3;
}

// A canvas does not follow the colours of the page by itself.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const plot of charts) plot.redraw(false);
});

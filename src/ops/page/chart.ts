import uPlot from 'uplot';
import { html, setAttributes } from './dom.ts';

interface Line {
  /** Name of the CSS variable with the colour of this line of the chart. */
  readonly colour: string;
  readonly filled?: boolean;
}

export interface ChartOptions {
  readonly lines: readonly Line[];
  /** Minimum top of the chart's vertical scale. The scale grows if a value of a line is higher. */
  readonly leastTop: number;
  /** Whether the vertical scale is compressed (arcsinh), so that small values stay visible beside large ones. Default: a linear scale. */
  readonly compressed?: boolean;
}

const HEIGHT = 44;
const charts = new Set<uPlot>();

/** Creates a small line chart without axes. On the status page, a text beside the chart says what it shows. */
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
    /** Draws the values of each line, measured at `times`; `text` describes the chart for screen readers. */
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

/**
 * Whether series `line` of the plot has fewer than three values. Its values are then drawn as points, because a line through them would be
 * too short to see.
 */
function isAlone(plot: uPlot, line: number): boolean {
  return Array.from(plot.data[line]!).filter((value) => value !== null).length < 3;
}

// A canvas keeps its colours when the page's colour scheme changes, so it is redrawn.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const plot of charts) plot.redraw(false);
});

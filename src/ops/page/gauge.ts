import { html, setAttributes } from './dom.ts';

export interface Gauge {
  readonly element: HTMLElement;
  /** @param text What a screen reader says of it. */
  readonly update: (value: number, most: number, text: string) => void;
}

/** A bar that is filled so far. */
export function gauge(label: string): Gauge {
  const fill = html('span', { class: 'fill' });
  const element = html(
    'div',
    { class: 'gauge', role: 'meter', 'aria-label': label, 'aria-valuemin': 0 },
    fill,
  );
  return {
    element,
    update: (value, most, text) => {
      const share = most > 0 ? Math.min(1, Math.max(0, value / most)) : 0;
      setAttributes(element, {
        'aria-valuenow': Math.round(value),
        'aria-valuemax': Math.round(most),
        'aria-valuetext': text,
      });
      fill.style.transform = `scaleX(${share.toFixed(3)})`;
    },
  };
}

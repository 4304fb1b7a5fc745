// Helpers for the elements of the pages: creating them, updating only what differs, keyed lists, and gauges.

type Attributes = Readonly<Record<string, string | number>>;

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

/** Creates an HTML element. Strings among its children become text nodes and are never parsed as HTML. */
export function html<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

export function svg<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/** Sets those attributes of an element whose values change. An equal value is not set again, as screen readers would repeat it. */
export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** Sets the text of a node, but only if the text changes. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function show(element: HTMLElement, shown: boolean): void {
  if (element.hidden === shown) element.hidden = !shown;
}

/** HTML element for one item of a {@link keyedList}. `update` shows an item in the element. */
export interface Row<T> {
  readonly element: Element;
  readonly update?: (item: T) => void;
}

interface KeyedListOptions<T> {
  readonly parent: Element;
  /** Returns the key of an item. Items with equal keys are distinguished by their order in the list. */
  readonly key: (item: T) => string;
  /**
   * Creates the row for an item whose key the previous list did not have. The row's `update` is called at once, and for each later item
   * with that key.
   */
  readonly make: (item: T) => Row<T>;
}

/**
 * Returns a function that shows a list of items as the children of `parent`. An item reuses the element that the previous list showed for
 * its key.
 */
export function keyedList<T>(options: KeyedListOptions<T>): (items: readonly T[]) => void {
  const { parent, key, make } = options;
  let rows = new Map<string, Row<T>>();
  return (items) => {
    const rowsByKey = new Map<string, Row<T>>();
    for (const item of items) {
      let name = key(item);
      while (rowsByKey.has(name)) name += ' again';
      const row = rows.get(name) ?? make(item);
      row.update?.(item);
      rowsByKey.set(name, row);
    }
    for (const [name, { element }] of rows) if (!rowsByKey.has(name)) element.remove();
    let next = parent.firstElementChild;
    for (const { element } of rowsByKey.values()) {
      if (element === next) next = next.nextElementSibling;
      else parent.insertBefore(element, next);
    }
    rows = rowsByKey;
  };
}

/** Creates a horizontal gauge: a bar that is filled in proportion to its value. */
export function gauge(label: string) {
  const fill = html('span', { class: 'fill' });
  const element = html(
    'div',
    { class: 'gauge', role: 'meter', 'aria-label': label, 'aria-valuemin': 0 },
    fill,
  );
  return {
    element,
    /** Sets the gauge to `value` on a scale from 0 to `most`. `text` describes the value for screen readers. */
    update: (value: number, most: number, text: string): void => {
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

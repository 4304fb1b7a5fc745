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

/** Sets the attributes whose value differs: setting an unchanged one costs a layout, and screen readers repeat it. */
export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** Sets the text of a node if it differs. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

export function show(element: HTMLElement, shown: boolean): void {
  if (element.hidden === shown) element.hidden = !shown;
}

/** The element of one item of a {@link keyedList}; `update` shows the item in it. */
export interface Row<T> {
  readonly element: Element;
  readonly update?: (item: T) => void;
}

interface KeyedListOptions<T> {
  readonly parent: Element;
  /** Returns a key that is unique among the items; `place` is the item's index. */
  readonly key: (item: T, place: number) => string;
  /** Creates the row of an item with a new key; the row's `update` is then called with every item of this key, also the first. */
  readonly make: (item: T) => Row<T>;
}

/** Returns a function that shows a list of items. Elements are reused for items of the same key, and moved only if necessary. */
export function keyedList<T>(options: KeyedListOptions<T>): (items: readonly T[]) => void {
  const { parent, key, make } = options;
  let rows = new Map<string, Row<T>>();
  return (items) => {
    const rowsByKey = new Map<string, Row<T>>();
    for (const [place, item] of items.entries()) {
      const name = key(item, place);
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
    /** Fills the gauge to `value` of `most`; `text` describes the value for screen readers. */
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

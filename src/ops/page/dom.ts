// Elements of the pages: made and changed as little as possible, kept in lists by keys, and bars.

type Attributes = Readonly<Record<string, string | number>>;

/** The element of index.html with this id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no #${id}`);
  return element;
}

/** A new element. What comes from elsewhere goes in as text, never as HTML. */
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

/** The same of SVG. */
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

/** Sets what differs: what stays as it is costs no layout, and is not read out again. */
export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    const text = String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
}

/** As {@link setAttributes}. */
export function setText(node: Node, text: string): void {
  if (node.textContent !== text) node.textContent = text;
}

/** As {@link setAttributes}. */
export function show(element: HTMLElement, shown: boolean): void {
  if (element.hidden === shown) element.hidden = !shown;
}

/** What stands for an item, and how it is brought up to date. */
export interface Row<T> {
  readonly element: Element;
  readonly update?: (item: T) => void;
}

interface KeyedListOptions<T> {
  readonly parent: Element;
  /** What tells items apart; each item its own. */
  readonly key: (item: T, place: number) => string;
  /** Told the first item that it stands for; `update` is called with each, the first one too. */
  readonly make: (item: T) => Row<T>;
}

/** Elements for items: kept for as long as their item is there, and moved only if need be. */
export function keyedList<T>(options: KeyedListOptions<T>): (items: readonly T[]) => void {
  const { parent, key, make } = options;
  let rows = new Map<string, Row<T>>();
  return (items) => {
    const kept = new Map<string, Row<T>>();
    for (const [place, item] of items.entries()) {
      const name = key(item, place);
      const row = rows.get(name) ?? make(item);
      row.update?.(item);
      kept.set(name, row);
    }
    for (const [name, { element }] of rows) if (!kept.has(name)) element.remove();
    let next = parent.firstElementChild;
    for (const { element } of kept.values()) {
      if (element === next) next = next.nextElementSibling;
      else parent.insertBefore(element, next);
    }
    rows = kept;
  };
}

/** A bar that is filled so far. */
export function gauge(label: string) {
  const fill = html('span', { class: 'fill' });
  const element = html(
    'div',
    { class: 'gauge', role: 'meter', 'aria-label': label, 'aria-valuemin': 0 },
    fill,
  );
  return {
    element,
    /** @param text What a screen reader says of it. */
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

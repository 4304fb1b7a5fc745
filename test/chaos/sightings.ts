import { canonical } from '../integration/support/checker.ts';
import { imageJson } from '../integration/support/image-json.ts';
import type { Read } from '../integration/support/topic-reader.ts';
import type { Heard } from './tap.ts';

interface Span {
  readonly begin: number;
  readonly end: number;
}

/** A state of an order that answers showed: the first that did, and the last. */
interface Version {
  readonly text: string;
  first: Span;
  last: Span;
}

type Order = Record<string, unknown>;

/**
 * An answer that was written to its socket is not read yet: on a busy machine the process asks for the next state
 * before it has looked at this one, and so takes the two for answers that overlap. Seen: 1.1 s, while another cluster began
 * on the same two cores.
 */
const UNREAD_MS = 3_000;

/**
 * What reads have seen of the orders, as it went over the wire, and so what has to be published.
 *
 * A state that an answer showed in a calm stretch has to be there, unless a newer one was shown by an
 * answer that had begun before that one ended: of two answers that overlap the newer state may stand
 * for both.
 */
export class Sightings {
  readonly #versions = new Map<string, Version[]>();

  note({ path, status, body, begin, end }: Heard): void {
    if (status !== 200 || !path.startsWith('/v1/orders')) return;
    const orders = ordersIn(body);
    for (const order of orders) {
      const key = String(order.order_number);
      const text = JSON.stringify(order);
      const versions = this.#versions.get(key) ?? [];
      this.#versions.set(key, versions);
      const known = versions.find((version) => version.text === text);
      if (!known) versions.push({ text, first: { begin, end }, last: { begin, end } });
      else known.last = { begin, end };
    }
  }

  /**
   * States that had to be published and are not in these events, and how many had to be.
   *
   * @param isCalm whether nothing went wrong while an answer was under way and published.
   */
  check(
    events: readonly Read[],
    isCalm: (begin: number, end: number) => boolean,
  ): { readonly violations: string[]; readonly checked: number } {
    const published = new Set<string>();
    for (const { key, value } of events) {
      const after = value?.after as Order | null | undefined;
      if (after) published.add(`${key} ${canonical(imageJson(after))}`);
    }
    const violations: string[] = [];
    let checked = 0;
    for (const [key, versions] of this.#versions) {
      versions.forEach(({ text, first, last }, place) => {
        const newer = versions.slice(place + 1).map((version) => version.first.begin);
        const before = Math.min(...newer);
        const counts = [first, last].some(
          ({ begin, end }) => end + UNREAD_MS < before && isCalm(begin, end),
        );
        if (!counts) return;
        checked += 1;
        if (!published.has(`${key} ${canonical(JSON.parse(text))}`))
          violations.push(
            `${key}: was seen at ${new Date(first.end).toISOString()}, a newer state not before ${before - last.end} ms later, and never published: ${text}`,
          );
      });
    }
    return { violations, checked };
  }
}

function ordersIn(body: Buffer): Order[] {
  try {
    return (JSON.parse(body.toString()) as { data: Order[] }).data;
  } catch {
    return []; // a fault's answer: no page, so nothing that was seen
  }
}

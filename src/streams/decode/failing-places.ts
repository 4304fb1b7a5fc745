/** A place in a list whose record can't be had: every page that holds it fails. */
export interface FailingPlace {
  /** Offset of the record. */
  readonly at: number;
  /** Key of the record in front of it, so that it stands after this key; undefined where there is none. */
  readonly after: string | undefined;
  /** Key of the record behind it, so that it stands before this key; undefined where there is none. */
  readonly before: string | undefined;
}

/** Most places remembered of one list. Places beyond that are searched for again, at a dozen requests each. */
const MAX_PLACES = 100;

/**
 * Failing places of one list, found before: a page that fails is first read around these, which takes two requests
 * instead of a search. The page itself is still asked for each time, so a record that can be had again is noticed at once.
 */
export class FailingPlaces {
  /** Offsets in the whole list and in windows of dates have nothing to do with each other. */
  readonly #places = { whole: [] as FailingPlace[], dated: [] as FailingPlace[] };

  /** Number of places known. */
  get size(): number {
    return this.#places.whole.length + this.#places.dated.length;
  }

  /** The first known place of a page, and where the next one is, at most the page's end. */
  find(
    isDated: boolean,
    offset: number,
    pageSize: number,
  ): { readonly place: FailingPlace; readonly until: number } | undefined {
    const end = offset + pageSize;
    const [first, second] = this.#of(isDated)
      .filter(({ at }) => at >= offset && at < end)
      .sort((a, b) => a.at - b.at);
    return first && { place: first, until: second?.at ?? end };
  }

  add(isDated: boolean, place: FailingPlace): void {
    const places = this.#of(isDated);
    const others = places.filter(({ at }) => at !== place.at).slice(1 - MAX_PLACES);
    places.splice(0, Infinity, ...others, place);
  }

  /** Forgets the places of a page: what was known of them is wrong. */
  forget(isDated: boolean, offset: number, pageSize: number): void {
    const places = this.#of(isDated);
    const others = places.filter(({ at }) => at < offset || at >= offset + pageSize);
    places.splice(0, Infinity, ...others);
  }

  #of(isDated: boolean): FailingPlace[] {
    return isDated ? this.#places.dated : this.#places.whole;
  }
}

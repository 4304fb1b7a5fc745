import { mix } from './random.ts';
import type { Resource } from './resources.ts';

/** Share of the records that a wrong index leaves out, from when on after the start, and how often, in ms. */
const WRONG = { share: 0.05, afterMs: 60_000, everyMs: 600_000 } as const;

/** Which records the lists hide although they are there: a share of them, told by key and seed. */
export class Hidden {
  readonly #seed: number;
  readonly #wrongIndexMs: number;
  readonly #clock: () => number;
  readonly #startedAt: number;
  readonly #shares = new Map<Resource, Set<{ readonly share: number }>>();

  /**
   * @param settings `wrongIndexMs`: how long all lists hide some records now and then, ms.
   * @param clock ms.
   */
  constructor(
    { seed, wrongIndexMs }: { readonly seed: number; readonly wrongIndexMs: number },
    clock: () => number,
  ) {
    this.#seed = mix(seed, 0x41d);
    this.#wrongIndexMs = wrongIndexMs;
    this.#clock = clock;
    this.#startedAt = clock();
  }

  /**
   * @param share from 0 to 1; a larger one hides what a smaller one does, and more.
   * @returns a function that shows them again.
   * @throws RangeError when there is no such share.
   */
  add(resource: Resource, share: number): () => void {
    if (!(share >= 0 && share <= 1)) throw new RangeError(`no share from 0 to 1: ${share}`);
    const shares = this.#shares.get(resource) ?? new Set();
    this.#shares.set(resource, shares);
    const entry = { share };
    shares.add(entry);
    return () => void shares.delete(entry);
  }

  /** Whether a list hides the record of this id; undefined when it hides none. */
  of(resource: Resource): ((id: number) => boolean) | undefined {
    const shares = [...(this.#shares.get(resource) ?? [])].map(({ share }) => share);
    const limit = Math.max(this.#isIndexWrong() ? WRONG.share : 0, ...shares) * 2 ** 32;
    return limit > 0 ? (id) => mix(this.#seed, id) < limit : undefined;
  }

  #isIndexWrong(): boolean {
    const since = this.#clock() - this.#startedAt - WRONG.afterMs;
    return since >= 0 && since % WRONG.everyMs < this.#wrongIndexMs;
  }
}

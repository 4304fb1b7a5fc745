import { mix } from './random.ts';
import type { Resource } from './resources.ts';

/** Which records the lists hide although they are there: a share of them, told by key and seed. */
export class Hidden {
  readonly #seed: number;
  readonly #shares = new Map<Resource, Set<{ readonly share: number }>>();

  constructor(seed: number) {
    this.#seed = mix(seed, 0x41d);
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
    const limit = Math.max(0, ...shares) * 2 ** 32;
    return limit > 0 ? (id) => mix(this.#seed, id) < limit : undefined;
  }
}

/** What a member of the group tells of itself. */
export interface Candidate {
  /** Its id in the group. */
  readonly id: string;
  /** The accounts whose files it has. */
  readonly known: ReadonlySet<string>;
  /** What it runs, or was given last, and in which generation of the group. */
  readonly held: ReadonlyMap<string, number>;
  /** Accounts of which it still has the images. */
  readonly warm: ReadonlySet<string>;
}

export interface AssignmentOptions {
  readonly members: readonly Candidate[];
  /** What an account costs now, more than 0; default 1. */
  readonly weights: ReadonlyMap<string, number>;
  /**
   * Whether accounts may go from one member to another so that all have the same to do: when members came or went, or when it
   * has been uneven for long.
   */
  readonly mayMove: boolean;
}

/** Accounts by member. Each that anybody knows is there once. */
export type Assignment = ReadonlyMap<string, readonly string[]>;

/** Members carry the same where none is further from the mean than this part of it. */
export const EVEN_WITHIN = 0.1;
/**
 * An account moves only if it weighs no more than this part of the difference between two members: a heavier one would all but
 * turn that round, and the next small change of a weight would send it back.
 */
export const MOST_OF_GAP = 0.75;

/**
 * Shares accounts out: each stays where it is; one that nobody has goes to a member that knows it, has its images, and carries
 * little. Then, where that is allowed, accounts move from who carries most until it is even, or no move makes it more so.
 *
 * The same members give the same result, in whatever order they come.
 */
export function assign({ members, weights, mayMove }: AssignmentOptions): Assignment {
  const byId = members.toSorted((a, b) => compare(a.id, b.id));
  const loads = new Loads(byId, (account) => weights.get(account) ?? 1);
  const accounts = [...new Set(byId.flatMap(({ known }) => [...known]))].sort(compare);

  const homeless = accounts.filter((account) => {
    const holder = holderOf(account, byId);
    if (holder) loads.give(holder, account);
    return !holder;
  });
  const heaviestFirst = (a: string, b: string) =>
    loads.weightOf(b) - loads.weightOf(a) || compare(a, b);
  for (const account of homeless.sort(heaviestFirst)) {
    loads.give(newHomeOf(account, byId, loads), account);
  }
  if (mayMove) even(byId, loads);
  return loads.assignment();
}

/** The newest generation knows best who has it; of two in one generation, whichever is first by id. */
function holderOf(account: string, members: readonly Candidate[]): Candidate | undefined {
  const holders = members.filter(({ known, held }) => known.has(account) && held.has(account));
  const newest = Math.max(...holders.map(({ held }) => held.get(account)!));
  return holders.find(({ held }) => held.get(account) === newest);
}

/** Who carries least; of those that are about as good, one that has its images. */
function newHomeOf(account: string, members: readonly Candidate[], loads: Loads): Candidate {
  const able = members.filter(({ known }) => known.has(account));
  const least = Math.min(...able.map((member) => loads.of(member)));
  // No more than that: what makes it uneven is moved again with the next change, or another account in its place.
  const enough = least + EVEN_WITHIN * loads.mean();
  const warm = able.filter((member) => member.warm.has(account) && loads.of(member) <= enough);
  const [home] = (warm.length > 0 ? warm : able).toSorted((a, b) => loads.of(a) - loads.of(b));
  return home!; // somebody knows it
}

/** Moves accounts as long as one makes the two members it is between more even, those furthest from the mean first. */
function even(members: readonly Candidate[], loads: Loads): void {
  for (;;) {
    const byLoad = members.toSorted((a, b) => loads.of(b) - loads.of(a));
    const move = firstOf(byLoad, (from) =>
      firstOf(byLoad.toReversed(), (to) => {
        const account = loads.isUneven(from, to) ? bestMove(from, to, loads) : undefined;
        return account === undefined ? undefined : { from, to, account };
      }),
    );
    if (!move) return;
    loads.take(move.from, move.account);
    loads.give(move.to, move.account);
  }
}

/** The account whose move leaves the two most alike; one whose images are there before one of which they are not. */
function bestMove(from: Candidate, to: Candidate, loads: Loads): string | undefined {
  const gap = loads.of(from) - loads.of(to);
  const fitting = loads
    .heldBy(from)
    .filter((account) => to.known.has(account) && loads.weightOf(account) <= MOST_OF_GAP * gap);
  const restOf = (account: string) => Math.abs(gap - 2 * loads.weightOf(account));
  const isCold = (account: string) => (to.warm.has(account) ? 0 : 1);
  return fitting.toSorted(
    (a, b) => restOf(a) - restOf(b) || isCold(a) - isCold(b) || compare(a, b),
  )[0];
}

/** What each member carries. */
class Loads {
  readonly #given: Map<string, Set<string>>;
  readonly #sums: Map<string, number>;
  readonly weightOf: (account: string) => number;
  #total = 0;

  constructor(members: readonly Candidate[], weightOf: (account: string) => number) {
    this.weightOf = weightOf;
    this.#given = new Map(members.map(({ id }) => [id, new Set()]));
    this.#sums = new Map(members.map(({ id }) => [id, 0]));
  }

  give({ id }: Candidate, account: string): void {
    this.#given.get(id)!.add(account);
    this.#add(id, this.weightOf(account));
  }

  take({ id }: Candidate, account: string): void {
    this.#given.get(id)!.delete(account);
    this.#add(id, -this.weightOf(account));
  }

  #add(id: string, weight: number): void {
    this.#sums.set(id, this.#sums.get(id)! + weight);
    this.#total += weight;
  }

  of({ id }: Candidate): number {
    return this.#sums.get(id)!;
  }

  mean(): number {
    return this.#total / this.#sums.size;
  }

  /** Whether one of two carries so much more than the other that one of them is far from the mean. */
  isUneven(more: Candidate, less: Candidate): boolean {
    const [most, least] = [this.of(more), this.of(less)];
    const far = EVEN_WITHIN * this.mean();
    return most > least && (most > this.mean() + far || least < this.mean() - far);
  }

  heldBy({ id }: Candidate): readonly string[] {
    return [...this.#given.get(id)!];
  }

  assignment(): Assignment {
    return new Map([...this.#given].map(([id, accounts]) => [id, [...accounts].sort(compare)]));
  }
}

function firstOf<In, Out>(all: readonly In[], look: (one: In) => Out | undefined): Out | undefined {
  for (const one of all) {
    const found = look(one);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** By code units: the same on every machine, whatever its language. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

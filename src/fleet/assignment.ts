/** A member of the fleet, to which accounts can be assigned. */
export interface Candidate {
  /** Instance id of the member. */
  readonly id: string;
  /**
   * Accounts of which the member has a valid configuration file, except those that must not be served because another account has the same
   * API key. Empty if the member is leaving the fleet.
   */
  readonly configured: ReadonlySet<string>;
  /**
   * Accounts that the member serves or that are assigned to it, each with the newest generation that assigned the account to the member.
   */
  readonly ownedSince: ReadonlyMap<string, number>;
  /** Accounts assigned to the member, and accounts whose images are in its state folder. */
  readonly warm: ReadonlySet<string>;
}

export interface AssignmentOptions {
  readonly members: readonly Candidate[];
  /** Current load of each account, greater than 0; default 1. */
  readonly weights: ReadonlyMap<string, number>;
  /**
   * Whether accounts may move between members to even out the loads. True if members joined or left, or if loads have been uneven for a
   * long time.
   */
  readonly mayMove: boolean;
}

/** Accounts assigned to each member, by the member's instance id. Accounts of which no member has the file are left out. */
export type Assignment = ReadonlyMap<string, readonly string[]>;

/**
 * Tolerated differences of load, as a fraction of the mean load of the members:
 *
 * - If the loads of two members both deviate from the mean by at most this, no account moves between them.
 * - An account without an owner goes to a member with its images, if one has at most this much more load than the least loaded member.
 */
export const BALANCE_TOLERANCE = 0.1;
/**
 * Maximum weight of an account that moves from one member to another, as a fraction of the difference of the two loads. If it is too large,
 * a move nearly swaps the loads, and the next small change of a weight moves the account back.
 */
export const MAX_MOVE_SHARE = 0.75;
/** Fraction of the mean load by which a member's load must deviate from the mean to count as out of balance. */
const MAX_DEVIATION = 0.2;
/**
 * Uneven loads trigger moves of accounts only if these moves reduce an unbalanced member's deviation from the mean load by at least this
 * fraction. If it is too small, accounts move for little benefit. If it is too large, uneven loads stay.
 */
const MIN_IMPROVEMENT = 0.25;

/**
 * Assigns accounts to members, in this order:
 *
 * - An account whose current owner still has the account's file stays with that owner.
 * - Every other account goes to a member that has its file and a small load, preferably to one that also has its images.
 * - If `mayMove`: accounts move to less loaded members until the loads are balanced or no suitable account is left.
 *
 * The result does not depend on the order of `members`.
 */
export function assign(options: AssignmentOptions): Assignment {
  return assignedLoads(options).assignment();
}

/** Whether moving accounts would bring the load of an unbalanced member considerably closer to the mean. */
export function isImbalanced(fleet: Omit<AssignmentOptions, 'mayMove'>): boolean {
  const now = assignedLoads({ ...fleet, mayMove: false });
  const moved = assignedLoads({ ...fleet, mayMove: true });
  return fleet.members.some((member) => {
    const off = now.deviationOf(member);
    return off > MAX_DEVIATION && moved.deviationOf(member) <= (1 - MIN_IMPROVEMENT) * off;
  });
}

function assignedLoads({ members, weights, mayMove }: AssignmentOptions): Loads {
  const byId = members.toSorted((a, b) => compare(a.id, b.id));
  const loads = new Loads(byId, (account) => weights.get(account) ?? 1);
  const accounts = [...new Set(byId.flatMap(({ configured }) => [...configured]))].sort(compare);

  const unowned = accounts.filter((account) => {
    const owner = currentOwner(account, byId);
    if (owner) loads.assign(owner, account);
    return !owner;
  });
  const heaviestFirst = (a: string, b: string) =>
    loads.weightOf(b) - loads.weightOf(a) || compare(a, b);
  for (const account of unowned.sort(heaviestFirst)) {
    loads.assign(newOwnerFor(account, byId, loads), account);
  }
  if (mayMove) balance(byId, loads);
  return loads;
}

/** Returns the member to which the account was assigned last, among the members that have its file; undefined if there is none. */
function currentOwner(account: string, members: readonly Candidate[]): Candidate | undefined {
  const holders = members.filter(
    ({ configured, ownedSince }) => configured.has(account) && ownedSince.has(account),
  );
  const newest = Math.max(...holders.map(({ ownedSince }) => ownedSince.get(account)!));
  return holders.find(({ ownedSince }) => ownedSince.get(account) === newest);
}

/** Returns the least loaded member that has the account's file. One that also has its images is preferred if its load is nearly as low. */
function newOwnerFor(account: string, members: readonly Candidate[], loads: Loads): Candidate {
  const able = members.filter(({ configured }) => configured.has(account));
  const least = Math.min(...able.map((member) => loads.loadOf(member)));
  // A larger allowance would create an imbalance that the next rebalance has to undo.
  const enough = least + BALANCE_TOLERANCE * loads.mean();
  const warm = able.filter((member) => member.warm.has(account) && loads.loadOf(member) <= enough);
  const byLoad = (warm.length > 0 ? warm : able).toSorted(
    (a, b) => loads.loadOf(a) - loads.loadOf(b),
  );
  return byLoad[0]!; // not empty: the account is configured at one of the members
}

/**
 * Moves one account after another from a more loaded member to a less loaded one, until the loads are balanced or no suitable account is
 * left.
 */
function balance(members: readonly Candidate[], loads: Loads): void {
  for (let move = nextMove(members, loads); move; move = nextMove(members, loads)) {
    loads.unassign(move.from, move.account);
    loads.assign(move.to, move.account);
  }
}

function nextMove(members: readonly Candidate[], loads: Loads) {
  const byLoad = members.toSorted((a, b) => loads.loadOf(b) - loads.loadOf(a));
  for (const from of byLoad) {
    for (const to of byLoad.toReversed()) {
      const account = loads.isImbalanced(from, to) ? bestMove(from, to, loads) : undefined;
      if (account !== undefined) return { from, to, account };
    }
  }
  return undefined;
}

/**
 * Returns the account whose move makes the loads of members `from` and `to` most equal; undefined if no account may move. An account may
 * move if `to` has its file, and its weight is at most {@link MAX_MOVE_SHARE} of the load difference.
 */
function bestMove(from: Candidate, to: Candidate, loads: Loads): string | undefined {
  const gap = loads.loadOf(from) - loads.loadOf(to);
  const fitting = loads
    .accountsOf(from)
    .filter(
      (account) => to.configured.has(account) && loads.weightOf(account) <= MAX_MOVE_SHARE * gap,
    );
  const restOf = (account: string) => Math.abs(gap - 2 * loads.weightOf(account));
  const isCold = (account: string) => (to.warm.has(account) ? 0 : 1);
  return fitting.toSorted(
    (a, b) => restOf(a) - restOf(b) || isCold(a) - isCold(b) || compare(a, b),
  )[0];
}

/** The accounts assigned to each member, and each member's total load. */
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

  assign({ id }: Candidate, account: string): void {
    this.#given.get(id)!.add(account);
    this.#add(id, this.weightOf(account));
  }

  unassign({ id }: Candidate, account: string): void {
    this.#given.get(id)!.delete(account);
    this.#add(id, -this.weightOf(account));
  }

  #add(id: string, weight: number): void {
    this.#sums.set(id, this.#sums.get(id)! + weight);
    this.#total += weight;
  }

  loadOf({ id }: Candidate): number {
    return this.#sums.get(id)!;
  }

  mean(): number {
    return this.#total / this.#sums.size;
  }

  /** Returns the deviation of a member's load from the mean, as a fraction of the mean. */
  deviationOf(member: Candidate): number {
    const mean = this.mean();
    return mean > 0 ? Math.abs(this.loadOf(member) - mean) / mean : 0;
  }

  /**
   * Whether member `more` has a higher load than member `less`, and at least one of the two loads is outside the tolerance around the mean.
   */
  isImbalanced(more: Candidate, less: Candidate): boolean {
    const [most, least] = [this.loadOf(more), this.loadOf(less)];
    const far = BALANCE_TOLERANCE * this.mean();
    return most > least && (most > this.mean() + far || least < this.mean() - far);
  }

  accountsOf({ id }: Candidate): readonly string[] {
    return [...this.#given.get(id)!];
  }

  assignment(): Assignment {
    return new Map([...this.#given].map(([id, accounts]) => [id, [...accounts].sort(compare)]));
  }
}

/** Compares two texts by UTF-16 code units, so that the order does not depend on the machine's locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

import type { InstanceLine } from './instance-process.ts';

/**
 * The state of a fleet's demo, derived from the log lines of its instances: which instance owns each account, and which accounts are
 * served.
 */
export class FleetScene {
  readonly #accountCount: number;
  /** Instance that claimed each account last, by account. */
  readonly #owners = new Map<string, string>();
  /** Accounts that are served: their owner has logged `ready` since the claim, and no release, stop or end of the owner has followed. */
  readonly #read = new Set<string>();
  #members = '';

  constructor(accountCount: number) {
    this.#accountCount = accountCount;
  }

  /** Whether every account is served by a running instance. */
  get isFullyServed(): boolean {
    return this.#read.size === this.#accountCount;
  }

  /** Updates the state of the fleet from one line of an instance's log, and returns the lines to print about the change. */
  linesFor(instance: string, { event, account, step, instances }: InstanceLine): readonly string[] {
    if (event === 'generation' && instances) return this.#generation(instances);
    if (account === undefined) return [];
    if (event === 'account') return this.#stepped(instance, account, step);
    return event === 'ready' ? this.#ready(instance, account) : [];
  }

  /** Marks as not served the accounts of an instance that has ended. Returns the names of these accounts, sorted. */
  instanceEnded(instance: string): readonly string[] {
    const owned = [...this.#owners.keys()].filter((name) => this.#owners.get(name) === instance);
    for (const account of owned) this.#read.delete(account);
    return owned.sort();
  }

  #generation(instances: readonly string[]): readonly string[] {
    const members = [...instances].sort().join(', ');
    if (members === this.#members) return []; // every member logs the generation
    this.#members = members;
    return [`the accounts are assigned to ${members}`];
  }

  #stepped(instance: string, account: string, step: string | undefined): readonly string[] {
    const owner = this.#owners.get(account);
    switch (step) {
      case 'claim':
        this.#owners.set(account, instance);
        this.#read.delete(account);
        return [
          `${instance} claims ${account}${owner && owner !== instance ? ` from ${owner}` : ''}`,
        ];
      case 'ask':
        return [
          `${instance} has restored the images of ${account}, and asks ${owner ?? 'its owner'} to release it`,
        ];
      case 'release':
      case 'stop':
        if (owner === instance) this.#read.delete(account);
        return step === 'release' ? [`${instance} releases ${account}`] : [];
      default:
        return [];
    }
  }

  #ready(instance: string, account: string): readonly string[] {
    if (this.#owners.get(account) !== instance || this.#read.has(account)) return [];
    this.#read.add(account);
    if (!this.isFullyServed) return [];
    const counts = new Map<string, number>();
    for (const owner of [...this.#owners.values()].sort()) {
      counts.set(owner, (counts.get(owner) ?? 0) + 1);
    }
    const shares = [...counts].map(([owner, count]) => `${owner} ${count}`).join(', ');
    return [`all ${this.#accountCount} accounts are served; accounts of each instance: ${shares}`];
  }
}

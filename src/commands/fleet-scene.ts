import type { InstanceLine } from './instance-process.ts';

/** Builds the output of a fleet's demo from the log lines of its instances. */
export interface FleetScene {
  /** Returns the lines to print for one line of an instance's log. */
  readonly linesFor: (instance: string, line: InstanceLine) => readonly string[];
  /** Called when an instance's process has ended. Returns the accounts that the instance owned. */
  readonly instanceEnded: (instance: string) => readonly string[];
  /** Whether every account is being read by a running instance. */
  readonly isFullyServed: () => boolean;
}

/**
 * Creates the object that turns the log lines of a fleet's instances into the demo's output.
 *
 * @param accounts Number of accounts of the fleet.
 */
export function fleetScene(accounts: number): FleetScene {
  /** Instance that claimed each account last, by account. */
  const owners = new Map<string, string>();
  /** Accounts that are being read by the instance that claimed them last. */
  const read = new Set<string>();
  let members = '';

  const take = (instance: string, account: string): string => {
    const before = owners.get(account);
    owners.set(account, instance);
    read.delete(account);
    const from = before === undefined || before === instance ? '' : ` over from ${before}`;
    return `${instance} takes ${account}${from}`;
  };
  const stepped = (instance: string, account: string, step: string): readonly string[] => {
    if (step === 'claim') return [take(instance, account)];
    const isOwn = owners.get(account) === instance;
    if (isOwn && (step === 'release' || step === 'stop')) read.delete(account);
    if (step === 'ask') return [`${instance} has the images of ${account}, and asks for it`];
    return step === 'release' ? [`${instance} releases ${account}`] : [];
  };
  const ready = (instance: string, account: string): readonly string[] => {
    if (owners.get(account) !== instance || read.has(account)) return [];
    read.add(account);
    return read.size === accounts ? [`all ${accounts} accounts are read: ${shares()}`] : [];
  };
  const shares = (): string => {
    const all = [...owners.values()];
    const names = [...new Set(all)].sort();
    return names
      .map((name) => `${name} ${all.filter((owner) => owner === name).length}`)
      .join(', ');
  };

  return {
    linesFor: (instance, { event, account, step, instances }) => {
      if (event === 'generation' && instances) {
        const now = [...instances].sort().join(', ');
        if (now === members) return []; // every member logs the generation
        members = now;
        return [`the accounts are shared out among ${now}`];
      }
      if (account === undefined) return [];
      if (event === 'account' && step !== undefined) return stepped(instance, account, step);
      return event === 'ready' ? ready(instance, account) : [];
    },
    instanceEnded: (instance) => {
      const had = [...owners].flatMap(([account, owner]) => (owner === instance ? [account] : []));
      for (const account of had) read.delete(account);
      return had.sort();
    },
    isFullyServed: () => read.size === accounts,
  };
}

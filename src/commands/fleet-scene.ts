import type { InstanceLine } from './instance-process.ts';

/** What a demo shows of its fleet, told by the logs of its instances. */
export interface FleetScene {
  /** Lines for people that a line of an instance's log comes to. */
  readonly told: (instance: string, line: InstanceLine) => readonly string[];
  /** An instance is no more: the accounts that it had. */
  readonly lost: (instance: string) => readonly string[];
  /** Whether each account is read by an instance that lives. */
  readonly isWhole: () => boolean;
}

/** @param accounts How many there are. */
export function fleetScene(accounts: number): FleetScene {
  /** By account, who has claimed it last. */
  const owners = new Map<string, string>();
  /** Accounts that are read. */
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
    told: (instance, { event, account, step, instances }) => {
      if (event === 'generation' && instances) {
        const now = [...instances].sort().join(', ');
        if (now === members) return []; // each of them says so
        members = now;
        return [`the accounts are shared out among ${now}`];
      }
      if (account === undefined) return [];
      if (event === 'account' && step !== undefined) return stepped(instance, account, step);
      return event === 'ready' ? ready(instance, account) : [];
    },
    lost: (instance) => {
      const had = [...owners].flatMap(([account, owner]) => (owner === instance ? [account] : []));
      for (const account of had) read.delete(account);
      return had.sort();
    },
    isWhole: () => read.size === accounts,
  };
}

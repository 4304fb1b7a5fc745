import type { FleetAccount, FleetView } from '../observe/fleet-view.ts';
import { describeError } from '../core/errors.ts';
import type { AccountFiles } from './account-files.ts';
import type { FleetWords } from './fleet-words.ts';
import { isQuarantined } from './losses.ts';
import type { SharedOut } from './member-data.ts';
import type { Doing } from './next-step.ts';
import { twinProblem } from './twins.ts';

/** What an instance knows of its fleet. */
export interface Known extends FleetWords {
  /** The name of the instance. */
  readonly name: string;
  readonly generation: number | undefined;
  readonly given: SharedOut | undefined;
  readonly files: AccountFiles;
  /** What is done here, and why it failed. */
  readonly here: ReadonlyMap<string, { readonly doing: Doing; readonly error: unknown }>;
  readonly now: number;
}

/** A handover, or the start of an account, is done by then, ms: what takes longer is said. */
const SLOW_MS = 30_000;

/** The same for people. */
export function fleetViewOf(known: Known): FleetView {
  const { name, generation, given, words, files } = known;
  const names = new Set([...files.keys(), ...words.keys(), ...(given?.accounts.keys() ?? [])]);
  for (const account of given?.twins?.keys() ?? []) names.add(account);
  return {
    instance: name,
    generation,
    instances: (given?.members ?? []).map((member) => member.name).sort(),
    accounts: [...names].sort().flatMap((account) => {
      const word = words.get(account);
      const file = files.get(account);
      const isKnown =
        file !== undefined || given?.accounts.has(account) || given?.twins?.has(account);
      // An account that was taken away in good order is no concern of anybody.
      if (!isKnown && !word?.owner) return [];
      return [accountOf(account, known)];
    }),
  };
}

function accountOf(account: string, known: Known): FleetAccount {
  const { given, words, reports, files, now } = known;
  const word = words.get(account);
  const file = files.get(account);
  const target = given?.accounts.get(account);
  const members = new Map(given?.members.map((member) => [member.instance, member.name]));
  const owner = word?.owner && members.has(word.owner.instance) ? word.owner : undefined;
  const since = word?.at ?? now;
  const { figures } = (owner && reports.get(owner.instance)?.accounts[account]) ?? {};
  const one = { account, owner: owner?.name, since };
  const running = { ...one, since: word?.takenAt ?? since, figures };
  if (file && 'error' in file) {
    const problem = describeError(file.error); // it may be right at another instance, which runs it
    return { ...(owner ? running : one), state: 'wrong-file', problem };
  }
  if (isQuarantined(word, now)) {
    const problem = 'it has taken three instances down: change its file to have it tried again';
    return { ...one, state: 'quarantined', problem };
  }
  const failure = failureOf(account, known, owner?.instance ?? target);
  if (failure !== undefined) return { ...one, state: 'failed', problem: failure };
  if (owner) {
    if (target === undefined || target === owner.instance) {
      return { ...running, state: 'running', problem: undefined };
    }
    const isSlow = now - since > SLOW_MS && word?.ask !== undefined;
    const problem = isSlow ? `${owner.name} has not released it` : undefined;
    const moving = { ...one, figures, target: members.get(target) };
    return { ...moving, state: 'moving', problem };
  }
  if (target !== undefined) {
    const isSlow = now - since > SLOW_MS;
    const problem = isSlow ? 'the instance that it was given has not taken it' : undefined;
    const state = isSlow ? 'without-owner' : 'starting';
    return { ...one, state, target: members.get(target), problem };
  }
  const twin = given?.twins?.get(account);
  if (twin !== undefined) {
    return { ...one, state: 'wrong-file', problem: twinProblem(account, twin) };
  }
  const problem = file ? 'it was given to no instance yet' : 'no instance has its file';
  return { ...one, state: 'without-owner', problem };
}

/** Why it can't go on: as it is known here, or as the instance has told that has it, or is to have it. */
function failureOf(
  account: string,
  { here, reports }: Known,
  instance: string | undefined,
): string | undefined {
  const own = here.get(account);
  if (own) return own.error === undefined ? undefined : describeError(own.error);
  return instance === undefined ? undefined : reports.get(instance)?.accounts[account]?.failed;
}

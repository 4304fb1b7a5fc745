import { unpackFleetAssignment } from '../../../src/fleet/member-metadata.ts';
import type { FleetAssignment } from '../../../src/fleet/member-metadata.ts';
import type { FleetTold } from './fleet-told.ts';
import type { Said } from './sim-fleet-topic.ts';
import type { SimGeneration } from './sim-group.ts';

const ANSWER_WITHIN_MS = 5_000;
/** What says how an account is from then on. */
const LASTING: ReadonlySet<Said['type']> = new Set(['runs', 'released', 'quarantined'] as const);

/**
 * Who lets go of an account, or takes it, had a reason to by what it had read then:
 *
 * - a release goes to the target of the newest generation that the releaser knows, which has asked in it;
 * - whoever takes an account that a member runs has asked for it in this generation, and waited for the answer;
 * - nobody takes an account that was given to its owner in a newer generation than it knows itself;
 * - nobody stops an account that it has claimed before somebody asks for it, or takes it, or it is quarantined.
 */
export function checkHandovers(
  told: readonly FleetTold[],
  generations: readonly SimGeneration[],
): string[] {
  const given = new Map(
    generations.map(({ number, given: bytes }) => [number, unpackFleetAssignment(bytes)]),
  );
  const newest = new Map<string, number>();
  /** By instance and account, when it has asked in its newest generation. */
  const asked = new Map<string, number>();
  /** When it has begun to take it. */
  const taken = new Map<string, number>();
  return told.flatMap((each): string[] => {
    const { instance, what, account = '', at } = each;
    const pair = `${instance.name} ${account}`;
    if (what === 'generation') {
      newest.set(instance.name, each.number!);
      for (const key of [...asked.keys()])
        if (key.startsWith(`${instance.name} `)) asked.delete(key);
      return [];
    }
    const number = newest.get(instance.name) ?? -1;
    const shared = given.get(number);
    if (what === 'ask') asked.set(pair, at);
    if (what === 'claim') taken.set(pair, at);
    if (!shared) return [];
    const heard = instance.log.read.slice(0, each.read).filter((one) => one.account === account);
    if (what === 'release') {
      const target = shared.accounts.get(account);
      const isAsked = heard.some(
        (one) => one.type === 'asks' && one.instance === target && one.generation === number,
      );
      return isAsked && target !== instance.name
        ? []
        : [`${pair} is released at ${at} though ${target} has not asked in ${number}`];
    }
    if (what === 'drop') {
      const last = heard.findLast(({ type }) => LASTING.has(type));
      const isClaimed = last?.instance === instance.name && last.type === 'runs';
      const isTaken = heard
        .slice(heard.indexOf(last!) + 1)
        .some((one) => one.type === 'takes' && one.instance !== instance.name);
      return isClaimed && !isTaken && last.at >= (taken.get(pair) ?? Infinity)
        ? [`${pair} is dropped at ${at} though it was claimed at ${last.at}`]
        : [];
    }
    if (what !== 'claim') return [];
    return claimed({ me: instance.name, number, shared, heard, askedAt: asked.get(pair), at }).map(
      (problem) => `${pair}: ${problem} at ${at}`,
    );
  });
}

interface Claimed {
  readonly me: string;
  readonly number: number;
  readonly shared: FleetAssignment;
  readonly heard: readonly Said[];
  readonly askedAt: number | undefined;
  readonly at: number;
}

function claimed({ me, number, shared, heard, askedAt, at }: Claimed): string[] {
  if (shared.accounts.get(heard[0]?.account ?? '') !== me && heard.length > 0)
    return ['takes what it was not given'];
  // Fenced, so in the order in which it happened; `takes` are but announced.
  const last = heard.findLast(({ type }) => type === 'runs' || type === 'released');
  const isAnnounced = heard.slice(heard.indexOf(last!) + 1).some(({ type }) => type === 'takes');
  if (last?.type !== 'runs' || last.instance === me || isAnnounced) return [];
  if (last.generation! > number)
    return [`takes in ${number} what ${last.instance} has since ${last.generation}`];
  const isMember = shared.members.some(({ instance }) => instance === last.instance);
  if (!isMember) return [];
  const hasWaited = askedAt !== undefined && at - askedAt >= ANSWER_WITHIN_MS;
  return hasWaited ? [] : [`takes what ${last.instance} runs, and has not waited for its answer`];
}

/** A claim that was begun may be on its way so long as the account is given to another instance, ms. */
const ON_ITS_WAY_MS = 2_000;

/**
 * Nobody takes an account that it knows to be given to another instance by now: it would fence that one for nothing. Whoever has
 * it already, and has not heard that its claim came through, claims it again, and fences nobody.
 */
export function checkTaken(
  told: readonly FleetTold[],
  generations: readonly SimGeneration[],
  said: readonly Said[],
): string[] {
  const given = new Map(
    generations.map(({ number, given: bytes }) => [number, unpackFleetAssignment(bytes).accounts]),
  );
  const owners = new Map<string, string | undefined>();
  return said.flatMap(({ type, account, instance, at }) => {
    const owner = owners.get(account);
    if (LASTING.has(type)) owners.set(account, type === 'runs' ? instance : undefined);
    if (type !== 'runs' || owner === instance) return [];
    const known = told.filter(
      (each) => each.what === 'generation' && each.instance.name === instance && each.at <= at,
    );
    const before = known.findLastIndex((each) => each.at < at - ON_ITS_WAY_MS);
    if (before < 0) return [];
    const targets = known.slice(before).map(({ number }) => given.get(number!)?.get(account));
    return targets.includes(instance)
      ? []
      : [`${instance} takes ${account} at ${at}, which is given to ${targets.join()}`];
  });
}

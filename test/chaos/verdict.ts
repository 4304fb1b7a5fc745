import { RESOURCES } from '../../src/sandbox/index.ts';
import type { Endpoint, Resource } from '../../src/sandbox/index.ts';
import {
  canonical,
  checkRecords,
  checkStatusChanges,
  recordOf,
  truthOf,
} from '../integration/support/checker.ts';
import type { Read } from '../integration/support/topic-reader.ts';
import { checkSequences } from '../support/sequences.ts';
import { API_KEY, LOGIN_QUOTA, PREFIX, QUOTA } from './world.ts';
import type { World } from './world.ts';

const WINDOW_MS = 60_000;
/** The clocks of the API and of the service are read on one machine, in different ways. */
const CLOCKS_APART_MS = 50;
const ENDPOINTS: readonly Endpoint[] = ['login', ...RESOURCES];

export interface Verdict {
  /** Every promise that was broken, in words. */
  readonly violations: readonly string[];
  /** How many of them a commit that is under way can explain, for a moment. */
  readonly passing: number;
  readonly events: number;
  readonly deletions: number;
  readonly statusChanges: number;
  /** States of orders that reads had seen, in calm stretches. */
  readonly sighted: number;
}

type Image = Readonly<Record<string, unknown>>;

/** Keys whose last image is not what the API says; it must stand still. */
export function disagreements({ topics, sandbox }: World): string[] {
  const wrong: string[] = [];
  for (const resource of RESOURCES) {
    const last = new Map<string, Image | null>();
    for (const { key, value } of topics.events(`${PREFIX}.${resource}`))
      last.set(key!, (value?.after as Image | null | undefined) ?? null);
    for (const [key, record] of truthOf(sandbox, resource)) {
      const image = last.get(key);
      last.delete(key);
      const text = image && canonical(recordOf(image));
      if (text !== canonical(record))
        wrong.push(`${resource} ${key}: ${text ? 'is behind' : 'is not there'}`);
    }
    for (const [key, image] of last) if (image) wrong.push(`${resource} ${key}: is still there`);
  }
  return wrong;
}

/**
 * Holds everything that came out against the promises and the truth of the API, which stands still.
 *
 * @param isCalm whether nothing went wrong in a stretch of time.
 */
export function judge(world: World, isCalm: (begin: number, end: number) => boolean): Verdict {
  const { topics, sandbox, sightings } = world;
  const violations: string[] = [];
  const say = (topic: string, found: readonly string[]) =>
    violations.push(...found.map((text) => `${topic}: ${text}`));
  const of = (name: string) => topics.events(`${PREFIX}.${name}`);

  let events = 0;
  let deletions = 0;
  let passing = 0;
  for (const resource of RESOURCES) {
    const found = checkRecords(of(resource), truthOf(sandbox, resource));
    say(resource, found.violations);
    say(resource, falseDeletions(of(resource), world, resource));
    const cursors = topics
      .notes(`${PREFIX}.cursors`)
      .filter(({ key }) => key.endsWith(`/${resource}`));
    const counted = checkSequences(of(resource), cursors);
    say(resource, [...counted.violations, ...counted.missing]);
    passing += counted.missing.length;
    events += of(resource).length;
    deletions += found.ops.d ?? 0;
  }
  const statuses = checkStatusChanges(of('order-status-changes'), of('orders'));
  say('order-status-changes', statuses.violations);
  const seen = sightings.check(of('orders'), isCalm);
  say('orders', seen.violations);
  say(
    'dead-letters',
    of('dead-letters').map(({ value }) => JSON.stringify(value)),
  );
  say('cursors', returned(world));
  say('quota', overQuota(world));
  say('output', secretsIn(world));
  return {
    violations,
    passing,
    events,
    deletions,
    statusChanges: statuses.count,
    sighted: seen.checked,
  };
}

/** Violations by their kind: what is said without the keys and the numbers, and how often. */
export function kindsOf(violations: readonly string[]): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const violation of violations) {
    const [topic = '', ...rest] = violation.split('\n')[0]!.split(': ');
    const kind = `${topic}: ${rest.join(': ').replace(/^[^:]*\d[^:]*: /, '')}`
      .replace(/[0-9a-f]{16,}/g, 'H')
      .replace(/\d+/g, 'N')
      .slice(0, 90);
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

/** Deletions of what was there, and tombstones without one. The API gives no key twice. */
function falseDeletions(events: readonly Read[], { sandbox }: World, resource: Resource): string[] {
  const wrong: string[] = [];
  const removedAt = new Map<string, number>();
  for (const { at, key, kind, resource: of } of sandbox.truth.changes)
    if (kind === 'delete' && of === resource) removedAt.set(String(key), at);
  const ended = new Set<string>();
  const waiting = new Set<string>();
  for (const { key, value, timestamp } of events) {
    const name = key!;
    if (value === null) {
      if (!waiting.delete(name)) wrong.push(`${name}: a tombstone without a deletion`);
      continue;
    }
    if (waiting.has(name)) wrong.push(`${name}: a deletion without a tombstone`);
    if (value.op !== 'd') continue;
    waiting.add(name);
    if (ended.has(name)) wrong.push(`${name}: is deleted twice`);
    ended.add(name);
    if (!((removedAt.get(name) ?? Infinity) <= timestamp + CLOCKS_APART_MS))
      wrong.push(`${name}: is deleted although it was there`);
  }
  for (const name of waiting) wrong.push(`${name}: a deletion without a tombstone`);
  return wrong;
}

/** A process that was replaced has written again. */
function returned({ topics }: World): string[] {
  const wrong: string[] = [];
  const latest = new Map<string, string>();
  const replaced = new Set<string>();
  for (const { key, value } of topics.notes(`${PREFIX}.cursors`)) {
    const instance = String(value.instance);
    const before = latest.get(key);
    if (before !== undefined && before !== instance) replaced.add(`${key} ${before}`);
    if (replaced.has(`${key} ${instance}`))
      wrong.push(`${key}: ${instance} was replaced, and wrote`);
    latest.set(key, instance);
  }
  return wrong;
}

/** As the API counts, in any window. */
function overQuota({ sandbox }: World): string[] {
  return ENDPOINTS.flatMap((endpoint) => {
    const most = sandbox.truth.mostInAnyWindow(endpoint, WINDOW_MS);
    const limit = endpoint === 'login' ? LOGIN_QUOTA : QUOTA;
    return most > limit ? [`${endpoint}: ${most} requests in one minute`] : [];
  });
}

/** Nothing secret and nobody's address is in what processes wrote, nor a secret in the topics. */
function secretsIn({ processes, tokens, topics, sandbox, cluster }: World): string[] {
  const written = processes.map((each) => each.stdout() + each.stderr()).join('\n');
  const published = JSON.stringify(
    topics.events(`${PREFIX}.dead-letters`).map(({ value }) => value),
  );
  const secrets = [API_KEY, ...tokens, ...(cluster?.secrets ?? [])].filter(
    (secret) => written.includes(secret) || published.includes(secret),
  );
  const people = [...sandbox.truth.records('customers')].map((customer) =>
    String((customer as { email?: string }).email),
  );
  const named = people.filter((email) => email.includes('@') && written.includes(email));
  return [
    ...secrets.map((secret) => `holds a secret: ${secret.slice(0, 8)}...`),
    ...named.map((email) => `holds the address of a customer: ${email}`),
  ];
}

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { RESOURCES } from '../../src/sandbox/index.ts';
import type { Endpoint, SandboxAccount } from '../../src/sandbox/index.ts';
import { startCluster } from '../integration/support/cluster.ts';
import type { LogLine } from '../integration/support/cli.ts';
import { fleetForTest, QUOTA } from '../integration/support/fleet.ts';
import type { Instance, TestAccount, TestFleet } from '../integration/support/fleet.ts';
import { checkRecords, checkStatusChanges, truthOf } from '../integration/support/checker.ts';
import { sandboxForTest } from '../integration/support/service.ts';
import { readTopics } from '../integration/support/topic-reader.ts';
import type { Read } from '../integration/support/topic-reader.ts';
import { checkSequences } from '../support/sequences.ts';
import { answeredAfter, freshness, inWords, longestSilence, quantile } from './fleet-measures.ts';
import type { Span } from './fleet-measures.ts';
import { Owners } from './owners.ts';
import type { Change } from './owners.ts';
import { FLEET, reportOf } from './settings.ts';

/** Half a thousand records an account, unless it is told otherwise, and a change a second in all. */
const RECORDS = {
  orders: FLEET.orders,
  customers: 100,
  inventory: 60,
  'wine-clubs': 6,
  'wine-club-members': 60,
  products: 40,
};
const PREFIX = 'fleet-run';
const POLL_INTERVAL_MS = 5_000;
/** How long all stands still before the first kill: what freshness is held against. */
const CALM_MS = 120_000;
/** How long after a kill the others are looked at. */
const AFTER_KILL_MS = 30_000;
/** An instance that is lost sooner after it has taken an account speaks against the account: three times, and nobody runs it. */
const SUSPICIOUS_MS = 30_000;
const TAKEOVER_MS = 20_000;
const HANDOVER_MS = 5_000;
const SETTLED = { timeout: 300_000, interval: 500 };
/** A million images take four minutes and more. */
const PUBLISHED = { timeout: 900_000, interval: 500 };

const now = () => performance.timeOrigin + performance.now();

it.skipIf(FLEET.accounts === 0)(
  `serves ${FLEET.accounts} accounts on three brokers through ${FLEET.kills} kills and ${FLEET.restarts} rolling restarts`,
  async (test) => {
    const services = await startCluster();
    if (typeof services === 'string') return test.skip(services);
    onTestFinished(() => services.stop());
    const fleet = await fleetForTest({
      ...{ prefix: PREFIX, accounts: FLEET.accounts, records: RECORDS, services },
      changesPerSecond: 1 / FLEET.accounts,
      env: {
        RESOURCES: '',
        POLL_INTERVAL_MS: String(POLL_INTERVAL_MS),
        SWEEP_INTERVAL_MS: '60000',
        DELETE_PROOF_MS: '60000',
      },
    });
    const names = ['one', 'two', 'three'];
    const instances = new Map<string, Instance>();
    const ever: Instance[] = [];
    const owners = new Owners();
    const start = (name: string) => {
      const instance = fleet.start(name);
      instances.set(name, instance);
      ever.push(instance);
      return instance;
    };
    const settled = (accounts = FLEET.accounts) =>
      vi.waitFor(async () => {
        const owned = [...instances.values()].map((one) => owners.of(one, ever).length);
        expect(owned.reduce((sum, count) => sum + count, 0)).toBe(accounts);
        for (const one of instances.values()) expect(await isReady(one)).toBe(true);
      }, SETTLED);

    const needless: string[] = [];
    /** Of one change; begins the next. */
    const countMoves = (change: Change): number => {
      const until = now();
      const moves = owners.moves(change, ever);
      needless.push(...moves.needless);
      console.log(`${moves.count} moves, needless:`, moves.needless);
      return until;
    };

    const report = reportOf(3);
    if (report !== undefined) {
      onTestFinished(() => {
        mkdirSync(report, { recursive: true });
        for (const [k, { name, cli }] of ever.entries())
          writeFileSync(join(report, `${k}-${name}.log`), cli.stderr());
      });
    }

    const began = now();
    for (const name of names) start(name);
    await settled();
    console.log('all accounts are read after', seconds(now() - began));
    const shares = [...instances.values()].map((one) => owners.of(one, ever).length);
    expect(Math.max(...shares)).toBeLessThanOrEqual(1.2 * Math.min(...shares));

    const calm: Span = { from: now(), to: now() + CALM_MS };
    await sleep(CALM_MS); // what is measured, not a wait for something
    const silences: number[] = [];
    const spans: { readonly span: Span; readonly others: ReadonlySet<string> }[] = [];
    for (let kill = 0; kill < FLEET.kills; kill++) {
      const name = names[kill % names.length]!;
      const victim = instances.get(name)!;
      const lost = new Set(owners.of(victim, ever));
      const at = now();
      await victim.cli.end('SIGKILL');
      instances.delete(name);
      const taken = fleet.accounts
        .filter((account) => lost.has(account.name))
        .map((account) => firstAnswer(account, at));
      silences.push(...(await Promise.all(taken)));
      console.log(`kill ${kill + 1}, ${lost.size} accounts:`, inWords(silences.slice(-lost.size)));
      await settled();
      const others = fleet.accounts.map(({ name }) => name).filter((name) => !lost.has(name));
      spans.push({ span: { from: at, to: at + AFTER_KILL_MS }, others: new Set(others) });
      const since = countMoves({ since: at, left: victim });
      const came = start(name);
      await settled();
      countMoves({ since, came });
      await sleep(SUSPICIOUS_MS); // no wait for something: the next kill is to be no account's fault
    }

    const gaps: number[] = [];
    for (let round = 0; round < FLEET.restarts; round++) {
      const from = now();
      for (const name of names) {
        const left = instances.get(name)!;
        const since = now();
        expect(await left.cli.end('SIGTERM')).toBe(0);
        instances.delete(name);
        const came = start(name);
        await settled();
        countMoves({ since, left, came });
      }
      const span = { from, to: now() };
      gaps.push(...fleet.accounts.map((account) => longestSilence(account, span)));
      console.log(`restart ${round + 1}:`, inWords(gaps.slice(-FLEET.accounts)));
    }

    let accounts = FLEET.accounts;
    for (const images of FLEET.images) {
      accounts += 1;
      const all = () => settled(accounts);
      await takesOneOf(images, `many-${accounts}`, fleet, { instances, ever, owners, start, all });
    }
    for (const { sandbox } of fleet.accounts) sandbox.setRate(0);
    const { violations, topics } = await publishedAll(fleet.accounts, services);
    const eventsOf = (accounts: Iterable<string>) =>
      [...accounts].flatMap((account) =>
        RESOURCES.flatMap((resource) => topics.get(topicOf(account, resource))!),
      );
    const calmly = freshness(eventsOf(fleet.accounts.map(({ name }) => name)), calm);
    const beside = spans.flatMap(({ span, others }) => freshness(eventsOf(others), span));
    console.log('from a kill to the first answer:', inWords(silences));
    console.log('silence in rolling restarts:', inWords(gaps));
    console.log('accounts that need not have moved:', needless.length);
    console.log('freshness in the calm:', inWords(calmly));
    console.log('freshness of the others after a kill:', inWords(beside));
    for (const [name, instance] of instances) console.log(name, 'RssAnon', rssAnonOf(instance));
    expect(violations).toEqual([]);
    for (const { cli } of instances.values()) expect(await cli.end('SIGTERM')).toBe(0);
    expect.soft(needless).toEqual([]);
    expect.soft(quantile(silences, 0.99)).toBeLessThan(TAKEOVER_MS);
    expect.soft(quantile(gaps, 0.99)).toBeLessThan(HANDOVER_MS);
    expect.soft(quantile(beside, 0.99)).toBeLessThan(quantile(calmly, 0.99) * 1.2);
  },
  7_200_000,
);

interface Running {
  /** By name. */
  readonly instances: Map<string, Instance>;
  /** Those that are gone too. */
  readonly ever: readonly Instance[];
  readonly owners: Owners;
  readonly start: (name: string) => Instance;
  /** Resolves when all accounts are shared out and ready. */
  readonly all: () => Promise<void>;
}

/** An account of so many images comes, and its instance is killed: how long each takes, and what the others notice. */
async function takesOneOf(
  images: number,
  account: string,
  { accounts, setFile }: TestFleet,
  { instances, ever, owners, start, all }: Running,
): Promise<void> {
  const quota = 6_000;
  const api = await sandboxForTest({
    records: { orders: images },
    quotaPerMinute: quota,
    changesPerSecond: 1,
  });
  const orders = { sandbox: api.accounts[0]! };
  const began = now();
  setFile(
    account,
    `API_BASE_URL=${api.url}\nAPI_KEY=${api.apiKey}\nRESOURCES=orders\nQUOTA_PER_MINUTE=${quota}\n`,
  );
  await all();
  const isPublished = () => ever.some(({ cli }) => cli.lines().some(isDoneWith(account)));
  await vi.waitFor(() => expect(isPublished()).toBe(true), PUBLISHED);
  console.log(`${images} orders: published after`, seconds(now() - began));
  const [name, owner] = [...instances].find(([, one]) => owners.of(one, ever).includes(account))!;
  const kept = new Set(accounts.map((each) => each.name));
  for (const lost of owners.of(owner, ever)) kept.delete(lost);
  const at = now();
  instances.delete(name);
  await owner.cli.end('SIGKILL');
  const answered = seconds(await firstAnswer(orders, at));
  console.log(`${images} images: from a kill to the first answer`, answered);
  const span = { from: at, to: now() };
  const silenceOf = (of: readonly TestAccount[]) =>
    inWords(of.map((each) => longestSilence(each, span)));
  const lost = accounts.filter((each) => !kept.has(each.name));
  console.log('silence meanwhile, of those that were lost with it:', silenceOf(lost));
  const others = accounts.filter((each) => kept.has(each.name));
  console.log('silence meanwhile, of the others:', silenceOf(others));
  await all();
  start(name);
  await all();
}

/** Whether a line says that the initial snapshot of an account is done. */
const isDoneWith =
  (name: string) =>
  ({ event, account, done }: LogLine): boolean =>
    event === 'first-read' && account === name && done === true;

async function isReady({ cli }: Instance): Promise<boolean> {
  const url = cli.lines().find(({ event }) => event === 'listening')?.url;
  if (typeof url !== 'string') return false;
  return (await fetch(new URL('/readyz', url))).ok;
}

const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

/** How long after a moment an account was answered first, ms. */
async function firstAnswer(
  { sandbox }: Pick<TestAccount, 'sandbox'>,
  since: number,
): Promise<number> {
  const first = () => answeredAfter(sandbox, since);
  await vi.waitFor(() => expect(first()).toBeDefined(), SETTLED);
  return first()! - since;
}

const topicOf = (account: string, of: string) => `${PREFIX}.${account}.${of}`;

/** Resolves when the topics say what the APIs do, or have had time to; with what breaks a promise. */
async function publishedAll(
  accounts: readonly TestAccount[],
  { brokers, registryUrl }: { readonly brokers: readonly string[]; readonly registryUrl: string },
): Promise<{ violations: string[]; topics: ReadonlyMap<string, Read[]> }> {
  const lists = [...RESOURCES, 'order-status-changes'];
  const names = accounts.flatMap(({ name }) => lists.map((list) => topicOf(name, list)));
  const until = now() + 300_000;
  for (;;) {
    const topics = await readTopics(brokers, registryUrl, names);
    const violations = accounts.flatMap((account) =>
      violationsOf(account, (list) => topics.get(topicOf(account.name, list))!),
    );
    if (violations.length === 0 || now() > until) return { violations, topics };
    await sleep(5_000); // between two looks
  }
}

function violationsOf(
  { name, sandbox }: TestAccount,
  eventsOf: (list: string) => Read[],
): string[] {
  const wrong = RESOURCES.flatMap((resource) => {
    const { violations, missing } = checkSequences(eventsOf(resource));
    return [
      ...checkRecords(eventsOf(resource), truthOf(sandbox, resource)).violations,
      ...[...violations, ...missing].map((violation) => `${resource}: ${violation}`),
      ...overrun(sandbox, resource, QUOTA.list),
    ];
  });
  const statuses = checkStatusChanges(eventsOf('order-status-changes'), eventsOf('orders'));
  return [...wrong, ...statuses.violations, ...overrun(sandbox, 'login', QUOTA.login)].map(
    (violation) => `${name}: ${violation}`,
  );
}

function overrun({ truth }: SandboxAccount, endpoint: Endpoint, quota: number): string[] {
  const most = truth.mostInAnyWindow(endpoint, 60_000);
  const refused = truth.refused(endpoint);
  return [
    ...(most > quota ? [`${most} requests to ${endpoint} in a minute`] : []),
    ...(refused > 0 ? [`${refused} answers 429 by ${endpoint}`] : []),
  ];
}

/** Memory that no file stands for, MB. */
function rssAnonOf({ cli }: Instance): number {
  const status = readFileSync(`/proc/${cli.process.pid!}/status`, 'utf8');
  return Math.round(Number(/RssAnon:\s+(\d+)/.exec(status)?.[1]) / 1_024);
}

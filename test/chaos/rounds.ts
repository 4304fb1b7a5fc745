import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Chance } from '../support/chance.ts';
import type { Fault } from './faults.ts';
import { recoveries, rowOf } from './recovery.ts';
import type { Round } from './recovery.ts';
import { disagreements, judge, kindsOf } from './verdict.ts';
import type { Verdict } from './verdict.ts';
import { PREFIX } from './world.ts';
import type { World } from './world.ts';

/**
 * How long after a fault everything may take, a whole window of the quota included. Where polls have all of it a sweep has
 * five pages a minute, and a deletion waits for two: of the one that a restart broke into nothing follows.
 */
const PATIENCE_MS = 240_000;
/** What a process has read may not be published yet when a fault strikes. */
const IN_HAND_MS = 3_000;
/**
 * How long the parts of a commit may be seen one after the other: the open transaction of another list, which its broker gives up
 * after a minute, holds back all cursors behind it.
 */
const COMMIT_MS = 60_000;

export interface RoundsOptions {
  /** A folder for what is found and measured. */
  readonly report: string | undefined;
  /** Whether a violation ends the run at its end only: to see what else there is. */
  readonly goesOn: boolean;
}

/** Faults of one world, one after the other: each followed by a look at all that came out. */
export class Rounds {
  readonly #world: World;
  readonly #chance: Chance;
  readonly #report: string | undefined;
  readonly #goesOn: boolean;
  readonly #rounds: Round[] = [];
  /** What was found, and the run went on. */
  readonly #found = new Set<string>();
  #calmSince = Infinity;

  constructor(world: World, chance: Chance, { report, goesOn }: RoundsOptions) {
    this.#goesOn = goesOn;
    this.#world = world;
    this.#chance = chance;
    this.#report = report;
    if (report !== undefined) mkdirSync(report, { recursive: true });
  }

  /** Resolves when the service has read everything. */
  async begin(): Promise<void> {
    await this.#ready();
    await this.#agreed('at the start');
    this.#calmSince = Date.now();
  }

  /** @throws Error with what the service said last, when it does not come so far as to read in some minutes. */
  async #ready(): Promise<void> {
    const late = new AbortController();
    const tooLate = sleep(PATIENCE_MS, undefined, { signal: late.signal }).then(() => {
      const last = this.#world.service.stderr().split('\n').slice(-15).join('\n');
      throw new Error(`the service does not become ready:\n${last}`);
    });
    tooLate.catch(() => undefined); // it was in time
    await Promise.race([this.#world.ready(), tooLate]).finally(() => late.abort());
  }

  /** Changes, and no fault, for so long: whatever is seen has to be published. */
  async calm(ms: number): Promise<void> {
    this.#world.traffic(true);
    await sleep(ms);
    this.#world.traffic(false);
    await this.#agreed('without a fault');
    await this.#expectRight('without a fault');
  }

  async round(fault: Fault): Promise<void> {
    const world = this.#world;
    world.traffic(true);
    await this.#flowing();
    this.#calmSince = Date.now();
    await sleep(2_000 + this.#chance.below(4_000));
    const struckAt = Date.now();
    await fault.strike(world, this.#chance);
    const liftedAt = Date.now();
    await sleep(2_000 + this.#chance.below(2_000));
    world.traffic(false);
    await this.#agreed(fault.name);
    const agreedAt = Date.now();
    expect(world.service.process.exitCode, `${fault.name}: the service has ended`).toBeNull();
    this.#rounds.push({ fault: fault.name, struckAt, liftedAt, agreedAt });
    await this.#expectRight(`round ${this.#rounds.length}: ${fault.name}`);
    // What strikes next shall meet a cluster that can bear it.
    await world.cluster?.inSync();
  }

  /** Ends the service as an operator does, judges for the last time, and tells how long things took. */
  async end(seed: number): Promise<void> {
    const { service, topics } = this.#world;
    expect(await service.end('SIGTERM')).toBe(0);
    await topics.update();
    const counts = await this.#expectRight('at the end');
    const table = recoveries(this.#rounds, topics.events(`${PREFIX}.orders`));
    console.table(table.map(rowOf));
    this.#write(
      'report.json',
      JSON.stringify({ seed, rounds: this.#rounds, counts, recoveries: table }),
    );
    expect([...this.#found].slice(0, 5), 'found on the way').toEqual([]);
  }

  async #expectRight(when: string): Promise<Omit<Verdict, 'violations'>> {
    const { violations, ...counts } = await this.#judged();
    console.log(when, counts);
    this.#tell(when, violations);
    return counts;
  }

  /** Fails with what is new in it, or goes on. */
  #tell(when: string, violations: readonly string[]): void {
    const fresh = violations.filter((violation) => !this.#found.has(violation));
    if (fresh.length === 0) return;
    for (const violation of fresh) this.#found.add(violation);
    this.#write('violations.txt', [...this.#found].join('\n'));
    console.log(when, kindsOf(fresh));
    if (!this.#goesOn) expect(fresh.slice(0, 5), when).toEqual([]);
  }

  /** What only a commit under way can explain is looked at again. */
  async #judged(): Promise<Verdict> {
    const until = performance.now() + COMMIT_MS;
    for (;;) {
      const verdict = judge(this.#world, this.#isCalm);
      if (verdict.passing === 0 || verdict.violations.length > verdict.passing) return verdict;
      if (performance.now() > until) return verdict;
      await sleep(300); // between two looks
      await this.#world.topics.update();
    }
  }

  readonly #isCalm = (begin: number, end: number): boolean =>
    begin > this.#calmSince &&
    this.#rounds.every(({ struckAt, agreedAt }) => end < struckAt - IN_HAND_MS || begin > agreedAt);

  /**
   * Resolves when changes arrive: the look at everything keeps this process busy, and the API and the proxies are in it. On
   * a slow machine the service has had no answer for half a minute by then.
   */
  async #flowing(): Promise<void> {
    const { topics } = this.#world;
    const known = topics.events(`${PREFIX}.orders`).length;
    const until = performance.now() + PATIENCE_MS;
    while (topics.events(`${PREFIX}.orders`).length === known) {
      if (performance.now() > until) throw new Error('nothing is published, though orders change');
      await sleep(200); // between two looks
      await topics.update();
    }
  }

  /** Resolves when the topics say what the API says, which stands still. */
  async #agreed(when: string): Promise<void> {
    const { topics, service } = this.#world;
    const until = performance.now() + (this.#goesOn ? PATIENCE_MS / 3 : PATIENCE_MS);
    for (;;) {
      await topics.update();
      const wrong = disagreements(this.#world).filter((one) => !this.#found.has(one));
      if (wrong.length === 0) return;
      if (performance.now() > until) {
        const last = service.stderr().split('\n').slice(-15).join('\n');
        console.log(`${when}: ${wrong.length} keys disagree\n${last}`);
        return this.#tell(when, wrong);
      }
      await sleep(300); // between two looks
    }
  }

  #write(name: string, text: string): void {
    if (this.#report !== undefined) writeFileSync(join(this.#report, name), text);
  }
}

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { withAdmin } from '../support/with-admin.ts';
import { Chance } from '../support/chance.ts';
import { scaled } from '../support/scale.ts';
import { folderForTest } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';
import { clientsForTest, numbers, writtenTopic } from './support/written-topic.ts';
import type { WrittenTopic } from './support/written-topic.ts';

const PREFIX = 'group-kill';
const TOPIC = `${PREFIX}.order-status-changes`;
const PARTITIONS = 6;
const KEYS_EACH = 8;
/** Groups side by side: of a killed member Kafka hears only when its session is over, 6 s later. */
const GROUPS = 2;
/** Of each group; in each all members are killed, one after the other. */
const ROUNDS = scaled(2, 6);
const KILLS = scaled(10, 30);
/** Events that are there to be handled, at least. */
const LOAD = 600;

const WORKER = fileURLToPath(new URL('./support/group-worker.mjs', import.meta.url));

/** A line of a journal. */
interface Line {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly eventId: string;
}

/** A group whose members are killed. */
class Victims {
  readonly #folder = folderForTest();
  readonly #chance: Chance;
  readonly #members: ChildProcess[] = [];
  readonly groupId: string;
  kills = 0;

  constructor(seed: number) {
    this.groupId = `${PREFIX}-${seed}`;
    this.#chance = new Chance(seed);
    mkdirSync(join(this.#folder, 'effects'));
    writeFileSync(join(this.#folder, 'journal'), '');
  }

  journal(): readonly Line[] {
    const lines = readFileSync(join(this.#folder, 'journal'), 'utf8').split('\n');
    lines.pop(); // behind the last line's end
    return lines.map((line) => {
      const [partition, offset, key, eventId] = line.split(' ');
      return { partition: Number(partition), offset: Number(offset), key: key!, eventId: eventId! };
    });
  }

  effects(): readonly string[] {
    return readdirSync(join(this.#folder, 'effects'));
  }

  /** Two or three members, killed one by one when some events more are handled for the first time. */
  async round(): Promise<void> {
    const size = this.kills % 5 === 0 ? 3 : 2; // three, two, three, two: five in two rounds, fifteen in six
    for (let n = 0; n < size; n++) this.#start();
    await this.#more(150 + this.#chance.below(300));
    const members = this.#chance.shuffled(this.#members.splice(0));
    for (let member = members.pop(); member; member = members.pop()) {
      member.kill('SIGKILL');
      this.kills += 1;
      // Who is left goes on with its own partitions.
      if (members.length > 0) await this.#more(this.#chance.below(50));
    }
  }

  /** New members handle the rest, and stop as they are meant to. */
  async finish(events: number): Promise<void> {
    const members = [this.#start(), this.#start()];
    const done = () => new Set(this.journal().map(({ eventId }) => eventId)).size >= events;
    await vi.waitUntil(done, { timeout: 60_000, interval: 50 });
    for (const member of members) {
      const ended = new Promise((resolve) => member.once('exit', resolve));
      member.kill('SIGTERM');
      expect(await ended).toBe(0);
    }
  }

  #start(): ChildProcess {
    const args = {
      brokers: inject('brokers'),
      registryUrl: inject('registryUrl'),
      prefix: PREFIX,
      groupId: this.groupId,
      folder: this.#folder,
    };
    const child = spawn(process.execPath, [WORKER, JSON.stringify(args)], { stdio: 'inherit' });
    onTestFinished(() => void child.kill('SIGKILL'));
    this.#members.push(child);
    return child;
  }

  async #more(count: number): Promise<void> {
    const wanted = this.effects().length + count;
    const reached = () => this.effects().length >= wanted;
    await vi.waitUntil(reached, { timeout: 60_000, interval: 20 });
  }
}

describe('subscribeGroup, its members killed at any moment', () => {
  it('has handled every event, those of a key in order, with one effect each', async () => {
    const clients = clientsForTest();
    const topic = await writtenTopic(clients, TOPIC, PARTITIONS);
    const groups = Array.from({ length: GROUPS }, (_, n) => new Victims(n + 1));
    let written = await write(topic, 0);

    let killing = true;
    const rounds = groups.map(async (group) => {
      for (let round = 0; round < ROUNDS; round++) await group.round();
    });
    const over = Promise.all(rounds).finally(() => (killing = false));
    over.catch(() => undefined); // awaited below
    const hungry = () =>
      written - Math.max(...groups.map((group) => group.effects().length)) < LOAD;
    while (killing) {
      if (hungry()) written = await write(topic, written);
      await vi.waitUntil(() => !killing || hungry(), { timeout: 60_000, interval: 50 });
    }
    await over;
    await Promise.all(groups.map((group) => group.finish(written)));

    const events = await readTopic(inject('brokers'), inject('registryUrl'), TOPIC);
    expect(events).toHaveLength(written);
    const published = byKey(events.map(({ key, value }) => [key!, String(value!.event_id)]));
    for (const group of groups) {
      const journal = group.journal();
      // A later event of a key is never handled first while an earlier one never was.
      const firsts = new Map(journal.map(({ key, eventId }) => [eventId, key] as const));
      const handled = byKey([...firsts].map(([eventId, key]) => [key, eventId]));
      expect(Object.fromEntries(handled)).toEqual(Object.fromEntries(published));
      expect([...group.effects()].sort()).toEqual([...firsts.keys()].sort());
      console.log(
        `${group.groupId}: ${group.kills} kills, ${written} events, ` +
          `${journal.length - firsts.size} of them handled again`,
      );
    }
    expect(groups.reduce((sum, { kills }) => sum + kills, 0)).toBe(KILLS);
    for (const { groupId } of groups) {
      const left = await withAdmin(clients.kafka, async (admin) => {
        const ends = await admin.fetchTopicOffsets(TOPIC);
        const [offsets] = await admin.fetchOffsets({ groupId, topics: [TOPIC] });
        return ends.filter(
          ({ partition, high }) =>
            offsets!.partitions.find((one) => one.partition === partition)?.offset !== high,
        );
      });
      expect(left).toEqual([]);
    }
  }, 240_000);
});

/** So many events more, in each partition some of each of its keys; gives how many there are then. */
async function write(topic: WrittenTopic, written: number): Promise<number> {
  const each = 50;
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const first = written + partition * each;
    const key = (number: number) => `${partition}/${number % KEYS_EACH}`;
    await topic.write(partition, numbers(first, first + each - 1), { key });
  }
  return written + PARTITIONS * each;
}

/** Event ids of each key, in order. */
function byKey(events: readonly (readonly [key: string, eventId: string])[]) {
  const found = new Map<string, string[]>();
  for (const [key, eventId] of events) found.set(key, [...(found.get(key) ?? []), eventId]);
  return found;
}

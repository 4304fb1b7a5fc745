import { Observable } from 'rxjs';
import { FleetTopicTable } from '../../../src/fleet/fleet-log.ts';
import type { FleetLog } from '../../../src/fleet/fleet-log.ts';
import type { FleetRecord } from '../../../src/fleet/fleet-record.ts';
import type { Message } from '../../../src/sinks/sink.ts';
import type { Chance } from '../../support/chance.ts';
import type { SimTime } from '../sim-time.ts';
import { reach, unreachable } from './sim-line.ts';
import type { SimLine } from './sim-line.ts';

export const FLEET = 'sim.fleet';

/** What the topic holds, read without the code under test. */
export interface Said {
  readonly offset: number;
  readonly at: number;
  readonly type: FleetRecord['type'] | 'reports' | 'forgets';
  /** Empty where it is about an instance. */
  readonly account: string;
  readonly instance: string;
  readonly generation: number | undefined;
}

interface Entry {
  readonly key: string;
  readonly value: Buffer | null;
  readonly said: Said;
}

const AGAIN_MS = 1_000;
const PATIENCE_MS = 30_000;

/** The fleet's topic: one partition, compacted. Whether a producer may write is for whoever calls to say. */
export class SimFleetTopic {
  readonly #time: SimTime;
  readonly entries: Entry[] = [];
  readonly #readers = new Set<() => void>();

  constructor(time: SimTime) {
    this.#time = time;
  }

  append(message: Message): void {
    const { type, account = '', instance, generation } = saidBy(message);
    const said = { offset: this.entries.length, at: this.#time.now() };
    this.entries.push({
      ...{ key: message.key!, value: message.value },
      said: { ...said, type, account, instance, generation },
    });
    for (const wake of this.#readers) wake();
  }

  onAppend(wake: () => void): () => void {
    this.#readers.add(wake);
    return () => this.#readers.delete(wake);
  }

  /** What compaction has left of what stands before an offset. */
  compacted(end: number): readonly Entry[] {
    const newest = new Map<string, Entry>();
    for (const entry of this.entries.slice(0, end)) newest.set(entry.key, entry);
    return [...newest.values()].sort((a, b) => a.said.offset - b.said.offset);
  }
}

type Spoken = Omit<Said, 'account'> & Partial<Pick<Said, 'account'>>;

function saidBy({ key, value }: Message): Spoken {
  const spoken: unknown = value ? JSON.parse(value.toString()) : { type: 'forgets', instance: key };
  return spoken as Spoken;
}

export interface FleetLine {
  readonly topic: SimFleetTopic;
  readonly line: SimLine;
  readonly time: SimTime;
  readonly scheduler: SimTime['scheduler'];
  readonly chance: Chance;
}

export interface SimFleetLog extends FleetLog {
  /** All that this instance has read, as it was said. */
  readonly read: readonly Said[];
}

/** The topic as one instance sees it: with what it has heard as the real code makes it of messages. */
export function fleetLogOf({ topic, line, time, scheduler, chance }: FleetLine): SimFleetLog {
  const heard = new FleetTopicTable();
  const read: Said[] = [];
  const waiting = new Set<() => void>();
  let next = 0;

  const hear = (entries: readonly Entry[]): void => {
    heard.apply(entries.map(({ key, value }) => ({ key: Buffer.from(key), value })));
    read.push(...entries.map(({ said }) => said));
  };
  const following$ = new Observable<void>((subscriber) => {
    let isNews = true;
    let wake: (() => void) | undefined;
    const forget = topic.onAppend(() => {
      isNews = true;
      wake?.();
    });
    const follow = async (): Promise<void> => {
      while (!subscriber.closed) {
        if (!isNews) await new Promise<void>((resolve) => (wake = resolve));
        await line.step('read the fleet');
        if (chance.is(0.03)) await time.sleep(chance.below(1_500));
        if (subscriber.closed) return;
        if (line.isCutOff()) {
          await new Promise<void>((resolve) => {
            scheduler.schedule(() => resolve(), AGAIN_MS);
          });
          continue;
        }
        isNews = false;
        const end = topic.entries.length;
        // Who begins finds what compaction has left, and whatever it has not come to yet.
        const clean = next === 0 ? chance.below(end + 1) : next;
        hear(next === 0 ? topic.compacted(clean) : []);
        hear(topic.entries.slice(clean, end));
        next = end;
        for (const look of waiting) look();
        subscriber.next();
      }
    };
    void follow();
    return forget;
  });

  /** One after the other, each for as long as a producer tries; so it may be late. */
  const send = async (message: Message): Promise<void> => {
    const until = scheduler.now() + PATIENCE_MS;
    await line.step(saidBy(message).type);
    if (chance.is(0.02)) await time.sleep(1_000 + chance.below(12_000));
    await line.step('sent');
    while (line.isCutOff()) {
      if (scheduler.now() > until) throw unreachable();
      await time.sleep(AGAIN_MS);
      await line.step('sent again');
    }
    topic.append(message);
    await reach(line, 'said');
  };
  let sending: Promise<unknown> = Promise.resolve();

  return {
    accounts: heard.accounts,
    reports: heard.reports,
    read,
    following$,
    catchUp: async () => {
      await reach(line, 'end of the fleet');
      const end = topic.entries.length;
      if (next >= end) return;
      await new Promise<void>((resolve) => {
        const look = () => {
          if (next < end) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
      });
    },
    send: (message) => {
      const sent = sending.then(() => send(message));
      sending = sent.catch(() => undefined);
      return sent;
    },
    close: () => undefined,
  };
}

import { asapScheduler } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { Bounds } from '../../../src/kafka/log.ts';
import type { LostEvents } from '../../../src/observe/lost-events.ts';
import { openCheckpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { Checkpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import { brokerOf, SimBroker } from '../../sim/sim-broker.ts';
import type { CommitFate } from '../../sim/sim-broker.ts';
import { SimFolder, storeOf } from '../../sim/sim-store.ts';

const TASK = 'estate/orders';
const TOPIC = 'wine.orders';
const image = { schemaId: 1, bytes: Buffer.from('image') };
const step = () => Promise.resolve();

/** A cluster whose topic of orders has so many partitions, and processes that open the task's log. */
function cluster(partitions = 1) {
  const now = { partitions };
  const kafka = new SimBroker((topic) => (topic === TOPIC ? now.partitions : 1));
  const lost: LostEvents[] = [];
  let heard: ReadonlyMap<string, ReadonlyMap<number, Bounds>> | undefined;
  const open = (
    instance: string,
    folder: SimFolder,
    claim: CommitFate = 'done',
    onRead = () => undefined as void,
  ) => {
    let fate = claim;
    const broker = brokerOf(kafka, { step, fate: () => fate, now: () => 0 });
    const told = (topic: string) => Promise.resolve(heard?.get(topic) ?? kafka.bounds(topic));
    return openCheckpoint({
      log: { ...broker, bounds: told },
      store: storeOf(folder, step).task(TASK),
      names: {
        task: TASK,
        topic: TOPIC,
        cursorTopic: 'wine.cursors',
        transactionalId: 'cellarstream.wine.estate.orders',
      },
      instance,
      readImage: (event) => {
        onRead();
        return Promise.resolve({ sequence: Number(event.toString()), image });
      },
      claimState: {},
      canRequestRecords: true,
      scheduler: asapScheduler,
      hooks: { onRestored: () => undefined, onLost: (told) => lost.push(told.lost) },
    }).then((log) => {
      fate = 'done';
      return log;
    });
  };
  /** From now on any broker but the coordinator tells what it knows now. */
  const heardBefore = () => {
    heard = new Map([TOPIC, 'wine.cursors'].map((topic) => [topic, kafka.bounds(topic)]));
  };
  return { kafka, open, lost, now, heardBefore };
}

/** Publishes an event of each key, as of an initial snapshot that is done. */
async function publish(log: Checkpoint, ...keys: readonly string[]): Promise<void> {
  const { sequence: before } = log.cursor;
  const sequences = keys.map((_, nth) => before + nth + 1);
  await log.commit({
    messages: keys.map((key, nth) => ({
      topic: TOPIC,
      key,
      value: Buffer.from(String(sequences[nth])),
    })),
    images: keys.map((key, nth) => ({ key, sequence: sequences[nth]!, image })),
    cursor: {
      ...log.cursor,
      sequence: before + keys.length,
      firstRead: { startedAt: 1, position: null, done: true },
    },
  });
}

describe('a task whose process died in its first write to the folder', () => {
  it('believes nothing of what is there: there are images, and no memory of them', async () => {
    const { kafka, open } = cluster();
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b');
    folder.tasks.get(TASK)!.memory = undefined;
    kafka.truncate(TOPIC, 1, 1);
    const log = await open('two', folder);
    expect([log.store.count(), log.cursor.losses]).toEqual([0, 1]);
  });
});

describe('a task whose folder has another version', () => {
  it('reads it anew: nothing that is stored there is believed', async () => {
    const { open } = cluster();
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b');
    const stored = folder.tasks.get(TASK)!;
    stored.memory = { ...stored.memory!, home: stored.memory!.home.replace(/^\d+/, '3') };
    stored.images.set('gone', { sequence: 1, ...image });
    const log = await open('two', folder);
    expect([log.store.count(), log.cursor.sequence]).toEqual([2, 2]);
  });
});

const known = (log: Checkpoint, keys: string) =>
  [...keys].filter((key) => log.store.get(key) !== undefined);

describe('a task whose topic has lost events', () => {
  it('begins to read anew, knows what is left, and goes on counting', async () => {
    const { kafka, open, lost } = cluster();
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b', 'c');
    kafka.truncate(TOPIC, 0.5, 1); // of four offsets two are left: c, and a marker
    const log = await open('two', folder);
    expect(log.cursor).toMatchObject({ sequence: 3, losses: 1, starts: { 0: '2' } });
    expect(log.cursor.firstRead).toEqual({ startedAt: null, position: null, done: false });
    expect(known(log, 'abc')).toEqual(['c']);
    expect(lost).toHaveLength(1);

    const again = await open('three', new SimFolder());
    expect(known(again, 'abc')).toEqual(['c']);
    expect(lost).toHaveLength(1); // it is dealt with
  });

  it('does so again, if it died before anybody was told', async () => {
    const { kafka, open, lost } = cluster();
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b');
    kafka.makeAnew(TOPIC, 1);
    await expect(open('two', folder, 'refused')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    expect(lost).toEqual([]);
    const log = await open('three', folder);
    expect(log.cursor.firstRead.done).toBe(false);
    expect(lost).toHaveLength(1);
  });

  it('finds out by its next commit, though that is longer than all that was there', async () => {
    const { kafka, open, lost } = cluster();
    const folder = new SimFolder();
    const log = await open('one', folder);
    await publish(log, 'a');
    kafka.makeAnew(TOPIC, 1);
    await expect(publish(log, 'b', 'c', 'd', 'e')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    const again = await open('one', folder);
    expect(known(again, 'abcde')).toEqual(['b', 'c', 'd', 'e']);
    expect(again.cursor.firstRead.done).toBe(false);
    expect(lost).toHaveLength(1);
  });

  it('forgets a store from before a loss that another process has made good', async () => {
    const { kafka, open } = cluster();
    const old = new SimFolder();
    await publish(await open('one', old), 'a', 'b');
    kafka.makeAnew(TOPIC, 1);
    await publish(await open('two', new SimFolder()), 'b', 'c', 'd', 'e', 'f');
    const log = await open('three', old);
    expect(known(log, 'abcdef')).toEqual(['b', 'c', 'd', 'e', 'f']);
    expect(log.cursor.firstRead.done).toBe(true);
  });

  it('forgets it too where no event is missing since, and reads nothing anew for it', async () => {
    const { kafka, open, lost } = cluster(2);
    const old = new SimFolder();
    await publish(await open('one', old), 'a');
    kafka.makeAnew(TOPIC, 1);
    await publish(await open('two', new SimFolder()), 'd'); // in the other partition
    const log = await open('three', old);
    expect(known(log, 'ad')).toEqual(['d']);
    expect([log.cursor.firstRead.done, lost.length]).toEqual([true, 1]);
  });

  it('takes nothing for published that it could not read back, as the topic was made anew meanwhile', async () => {
    const { kafka, open, lost } = cluster(2);
    await publish(await open('one', new SimFolder()), 'a', 'd');
    const folder = new SimFolder();
    const opened = open('two', folder, 'done', () => kafka.makeAnew(TOPIC, 1));
    await expect(opened).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' });
    expect(lost).toEqual([]);
    const log = await open('two', folder);
    expect(log.cursor).toMatchObject({ sequence: 2, firstRead: { done: false } });
    expect(known(log, 'ad')).toEqual([]);
    expect(lost).toHaveLength(1);
  });

  it('misses nothing where a broker that leads no longer tells of less than there is', async () => {
    const { kafka, open, heardBefore } = cluster(2);
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a');
    const old = folder.copy();
    heardBefore();
    await publish(await open('one', folder), 'b', 'c');
    const log = await open('two', old);
    expect(log.cursor).toMatchObject({ sequence: 3, firstRead: { done: true } });
    expect(known(log, 'abc')).toEqual(['a', 'b', 'c']);
    expect(kafka.losses).toBe(0);
  });

  it('goes on counting with a store from before its first event, and one that ends as the new topic does', async () => {
    const { kafka, open } = cluster();
    const [empty, old] = [new SimFolder(), new SimFolder()];
    await open('one', empty);
    await publish(await open('two', old), 'a', 'b');
    kafka.makeAnew(TOPIC, 1);
    const log = await open('three', empty);
    expect(log.cursor).toMatchObject({ sequence: 2, losses: 1, firstRead: { done: false } });
    await publish(log, 'c', 'd');
    const again = await open('four', old);
    expect(again.cursor).toMatchObject({ sequence: 4, losses: 1 });
    expect(known(again, 'abcd')).toEqual(['c', 'd']);
  });

  it('knows its cursor where the topic of cursors was lost', async () => {
    const { kafka, open, lost } = cluster();
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b');
    kafka.makeAnew('wine.cursors', 1);
    const log = await open('two', folder);
    expect(log.cursor).toMatchObject({ sequence: 2, firstRead: { done: true } });
    expect(lost).toEqual([]);
  });
});

describe('a task whose folder is older than what compaction has left', () => {
  const remove = (log: Checkpoint, key: string) =>
    log.commit({
      messages: [
        { topic: TOPIC, key, value: Buffer.from(String(log.cursor.sequence + 1)) },
        { topic: TOPIC, key, value: null },
      ],
      images: [{ key, sequence: log.cursor.sequence + 1, image: null }],
      cursor: { ...log.cursor, sequence: log.cursor.sequence + 1 },
    });

  it('does not take a record for alive that was deleted meanwhile', async () => {
    const { kafka, open } = cluster();
    const old = new SimFolder();
    await publish(await open('one', old), 'a', 'b');
    const other = await open('two', new SimFolder());
    await remove(other, 'a');
    await publish(other, 'c');
    kafka.compact(TOPIC);
    const log = await open('one', old);
    expect(known(log, 'abc')).toEqual(['b', 'c']);
    expect(log.cursor.sequence).toBe(4);
    await publish(log, 'd');
    expect(known(await open('three', old), 'abcd')).toEqual(['b', 'c', 'd']);
  });

  it('does not, if the deletion was the last that happened', async () => {
    const { kafka, open } = cluster();
    const old = new SimFolder();
    await publish(await open('one', old), 'a', 'b');
    await remove(await open('two', new SimFolder()), 'a');
    kafka.compact(TOPIC);
    expect(known(await open('one', old), 'ab')).toEqual(['b']);
  });

  it('does not, if a process before it died as it read the topic back', async () => {
    const { kafka, open } = cluster(3);
    const [old, half] = [new SimFolder(), new SimFolder()];
    const keys = [...'abcdefghij'];
    await publish(await open('one', old), ...keys);
    const dies = () => {
      throw new Error('dies');
    };
    let messages = 0;
    const diesHalfway = () => (++messages > 5 ? dies() : undefined);
    await expect(open('one', half, 'done', diesHalfway)).rejects.toThrow('dies');
    const read = half.tasks.get(TASK)!.images;
    expect([0 < read.size, read.size < keys.length]).toEqual([true, true]);
    const [gone] = read.keys();
    await remove(await open('two', new SimFolder()), gone!);
    kafka.compact(TOPIC);
    const log = await open('one', half);
    expect(known(log, keys.join(''))).toEqual(keys.filter((key) => key !== gone));
  });

  it('does not, if a process before it died as it read the topic back, before it came to the deletion', async () => {
    const { kafka, open } = cluster();
    const half = new SimFolder();
    const keys = [...'abcdefghijkl'];
    const log = await open('one', new SimFolder());
    await publish(log, ...keys);
    await remove(log, 'a');
    let messages = 0;
    const diesLate = () => {
      if (++messages > 11) throw new Error('dies');
    };
    await expect(open('two', half, 'done', diesLate)).rejects.toThrow('dies');
    expect(half.tasks.get(TASK)!.images.has('a')).toBe(true);
    kafka.compact(TOPIC);
    expect(known(await open('three', half), keys.join(''))).toEqual(keys.slice(1));
  });

  it('keeps its images where nothing is missing: not one is read twice', async () => {
    const { kafka, open } = cluster();
    const old = new SimFolder();
    await publish(await open('one', old), 'a', 'b');
    kafka.compact(TOPIC);
    const other = await open('two', new SimFolder());
    await publish(other, 'b');
    await remove(other, 'a');
    let read = 0;
    const log = await open('one', old, 'done', () => void read++);
    expect([read, known(log, 'ab')]).toEqual([2, ['b']]);
  });

  it('goes on reading the topic back after a failure, though it was compacted before', async () => {
    const { kafka, open } = cluster(3);
    const keys = [...'abcdefghij'];
    const log = await open('one', new SimFolder());
    await publish(log, ...keys);
    await publish(log, ...keys);
    kafka.compact(TOPIC);
    const half = new SimFolder();
    let read = 0;
    const count = () => {
      if (++read === 6) throw new Error('fails');
    };
    await expect(open('two', half, 'done', count)).rejects.toThrow('fails');
    const { size } = half.tasks.get(TASK)!.images;
    read = 6;
    expect(known(await open('two', half, 'done', count), keys.join(''))).toEqual(keys);
    expect([size > 0, read - 6]).toEqual([true, keys.length - size]);
  });
});

describe('the count of live keys in a cursor', () => {
  /** Somebody else writes to the topic: a tombstone, behind which compaction leaves nothing. */
  const strike = (kafka: SimBroker, key: string) => {
    const epoch = kafka.open('somebody');
    kafka.begin('somebody', epoch);
    kafka.append('somebody', epoch, [{ topic: TOPIC, key, value: null }], 1);
    kafka.commit('somebody', epoch);
  };
  const recordsOf = ({ cursor }: Checkpoint) => cursor.live?.partitions.map((each) => each.records);

  it('is the same in a topic that is read back, and then nothing is said', async () => {
    const { open, lost } = cluster(2);
    await publish(await open('one', new SimFolder()), 'a', 'b', 'd');
    const log = await open('two', new SimFolder());
    expect(recordsOf(log)).toEqual([2, 1]);
    expect([log.cursor.losses, lost]).toEqual([undefined, []]);
  });

  it('differs from a topic in which something is missing: all is read anew, and it is said once', async () => {
    const { kafka, open, lost } = cluster(2);
    await publish(await open('one', new SimFolder()), 'a', 'b', 'd');
    strike(kafka, 'a');
    const log = await open('two', new SimFolder());
    expect(log.cursor).toMatchObject({ losses: 1, lostSequence: 3, firstRead: { done: false } });
    expect(lost).toEqual([
      { topic: TOPIC, gaps: [], offsets: 0, keys: [{ partition: 0, before: 2, now: 1 }] },
    ]);
    expect(recordsOf(log)).toEqual([1, 1]); // a new base
    await open('three', new SimFolder());
    expect(lost).toHaveLength(1);
  });

  it('is held against it again, if the first who found it died before he could say so', async () => {
    const { kafka, open, lost } = cluster();
    await publish(await open('one', new SimFolder()), 'a', 'b');
    strike(kafka, 'a');
    const folder = new SimFolder();
    await expect(open('two', folder, 'refused')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    expect(lost).toEqual([]);
    await open('three', folder);
    expect(lost).toHaveLength(1);
  });

  it('is believed where the folder is warm: nothing is read for it', async () => {
    const { open } = cluster();
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b');
    let read = 0;
    const log = await open('two', folder, 'done', () => void read++);
    expect([read, recordsOf(log)]).toEqual([0, [2]]);
  });
});

describe('a task whose topic has another number of partitions', () => {
  it('is refused, until the topic is empty', async () => {
    const { kafka, open, now, lost } = cluster(2);
    const folder = new SimFolder();
    await publish(await open('one', folder), 'a', 'b');
    now.partitions = 3;
    kafka.grow(TOPIC);
    await expect(open('two', folder)).rejects.toMatchObject({
      code: 'TOPIC_CHANGED',
      message: expect.stringMatching(
        /^wine\.orders has 3 partitions, but its events were written with 2, so .* TOPIC_PREFIX$/,
      ) as string,
    });
    kafka.makeAnew(TOPIC, 1);
    const log = await open('two', folder);
    expect(log.cursor).toMatchObject({ partitions: 3, firstRead: { done: false } });
    expect(lost).toHaveLength(1);
  });
});

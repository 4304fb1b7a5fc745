import { VirtualTimeScheduler } from 'rxjs';
import { beforeEach, describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { Checkpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { ClaimState } from '../../../src/pipeline/checkpoint/task-claim.ts';
import type { TaskNames } from '../../../src/pipeline/task.ts';
import { brokerOf, SimBroker } from '../../sim/sim-broker.ts';
import type { CommitFate } from '../../sim/sim-broker.ts';
import { SimFolder, storeOf } from '../../sim/sim-store.ts';

const TASK = 'estate/orders';
const PLACE: TaskNames = {
  task: TASK,
  topic: 'wine.orders',
  cursorTopic: 'wine.cursors',
  transactionalId: 'cellarstream.wine.estate.orders',
};
const image = { key: '7', sequence: 1, image: { schemaId: 1, bytes: Buffer.from('7') } };

describe('a process that opens its log again after a claim of which it does not know the outcome', () => {
  let kafka: SimBroker;
  let folder: SimFolder;
  beforeEach(() => {
    kafka = new SimBroker(() => 1);
    folder = new SimFolder();
  });

  /** A process, with that folder unless told; its claims go as they are told to. */
  const process = (instance: string, home = folder) => {
    const ownership: ClaimState = {};
    return async (claim: CommitFate = 'done'): Promise<Checkpoint> => {
      let fate = claim;
      const step = () => Promise.resolve();
      try {
        const log = await openCheckpoint({
          log: brokerOf(kafka, { step, fate: () => fate, now: () => 0 }),
          store: storeOf(home, step).task(TASK),
          names: PLACE,
          instance,
          readImage: () => Promise.resolve(image),
          claimState: ownership,
          canRequestRecords: true,
          scheduler: new VirtualTimeScheduler(),
        });
        fate = 'done';
        return log;
      } catch (error) {
        ownership.lastError = error;
        throw error;
      }
    };
  };
  const publishSomething = (checkpoint: Checkpoint) =>
    checkpoint.commit({
      messages: [{ topic: 'wine.orders', key: '7', value: Buffer.from('an event') }],
      images: [image],
      cursor: checkpoint.cursor,
    });

  it('goes on, though the claim of a dead predecessor, that came without events, stands in the cursor', async () => {
    await publishSomething(await process('one')());
    await expect(process('two')('unknown')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    const third = process('three');
    await expect(third('refused')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    const { cursor } = await third();
    expect(cursor).toMatchObject({ instance: 'three', sequence: 0 });
  });

  it('stops, when another has claimed the task since', async () => {
    await publishSomething(await process('one')());
    const second = process('two');
    await expect(second('refused')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    await process('three', new SimFolder())(); // on another machine
    await expect(second()).rejects.toMatchObject({ code: 'FENCED' });
  });

  it('goes on with its own claim, if that was committed after all', async () => {
    const first = process('one');
    await expect(first('unknown')).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    expect((await first()).cursor).toMatchObject({ instance: 'one' });
  });
});

describe('an instance that is given a task back', () => {
  it('goes on from the newest cursor, though it has read the cursors before', async () => {
    const kafka = new SimBroker(() => 1);
    const step = () => Promise.resolve();
    /** An instance: what it has read of Kafka is there as long as it is, its images for one opening. */
    const instance = (name: string) => {
      const log = brokerOf(kafka, { step, fate: () => 'done', now: () => 0 });
      return () =>
        openCheckpoint({
          log,
          store: storeOf(new SimFolder(), step).task(TASK),
          names: PLACE,
          instance: name,
          readImage: () => Promise.resolve(image),
          claimState: {},
          canRequestRecords: true,
          scheduler: new VirtualTimeScheduler(),
        });
    };
    const reached = (checkpoint: Checkpoint, since: number) =>
      checkpoint.commit({ messages: [], images: [], cursor: { ...checkpoint.cursor, since } });
    const [east, west] = [instance('east'), instance('west')];
    await reached(await west(), 1);
    await reached(await east(), 2);
    await reached(await west(), 3);
    expect((await east()).cursor).toMatchObject({ since: 3, generation: 4 });
  });
});

describe('a process that has ended while its log was being opened', () => {
  it.each([1, 2, 3])('leaves the task to whoever comes after, at its step %d too', async (nth) => {
    const kafka = new SimBroker(() => 1);
    const ownership: ClaimState = {};
    let steps = 0;
    const step = () => {
      if (++steps === nth) ownership.hasEnded = true;
      return Promise.resolve();
    };
    const opening = openCheckpoint({
      log: brokerOf(kafka, { step, fate: () => 'done', now: () => 0 }),
      store: storeOf(new SimFolder(), () => Promise.resolve()).task(TASK),
      names: PLACE,
      instance: 'one',
      readImage: () => Promise.resolve(image),
      claimState: ownership,
      canRequestRecords: true,
      scheduler: new VirtualTimeScheduler(),
    });
    await expect(opening).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
    expect(kafka.read('wine.cursors')).toEqual([]);
  });
});

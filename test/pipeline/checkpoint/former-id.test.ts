import { beforeEach, describe, expect, it } from 'vitest';
import type { Cursor } from '../../../src/pipeline/checkpoint/cursor.ts';
import { openCheckpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { Checkpoint } from '../../../src/pipeline/checkpoint/checkpoint.ts';
import type { Ownership } from '../../../src/pipeline/checkpoint/ownership.ts';
import { transactionalIds } from '../../../src/pipeline/transactional-id.ts';
import { brokerOf, SimBroker } from '../../sim/sim-broker.ts';
import type { CommitFate } from '../../sim/sim-broker.ts';
import { SimFolder, storeOf } from '../../sim/sim-store.ts';
import { hurriedTime } from '../../support/hurried-time.ts';

const image = { schemaId: 1, bytes: Buffer.from('image') };
const EPOCH = { code: 'COMMIT_FAILED', context: { epoch: true } };

let kafka: SimBroker;
beforeEach(() => {
  kafka = new SimBroker(() => 1);
});

/** A process of an account, of this version or an older one; opens its log as its commits are told to go. */
function process(prefix: string, account: string, instance: string, version: 'old' | 'new') {
  const ownership: Ownership = {};
  const folder = new SimFolder();
  const hooks = { onRead: (): Promise<unknown> => Promise.resolve() };
  const { transactionalId, formerId } = transactionalIds(prefix, account, 'orders');
  const step = () => Promise.resolve();
  const open = async (...fates: CommitFate[]): Promise<Checkpoint> => {
    try {
      return await openCheckpoint({
        log: brokerOf(kafka, { step, fate: () => fates.shift() ?? 'done', now: () => 0 }),
        store: storeOf(folder, step).task(`${account}/orders`),
        place: {
          task: `${account}/orders`,
          topic: `${prefix}.orders`,
          cursorTopic: `${prefix}.cursors`,
          ...(version === 'old'
            ? { transactionalId: formerId! }
            : { transactionalId, formerId: formerId! }),
        },
        instance,
        readImage: async (event) => {
          await hooks.onRead();
          return { sequence: Number(event.toString()), image };
        },
        ownership,
        canBeAsked: true,
        scheduler: hurriedTime().scheduler,
      });
    } catch (error) {
      ownership.lost = error;
      throw error;
    }
  };
  return Object.assign(open, { hooks });
}
const ofOne = (instance: string, version: 'old' | 'new') =>
  process('wine', 'eu.main', instance, version);
const ofOther = (instance: string, version: 'old' | 'new') =>
  process('wine.eu', 'main', instance, version);

async function publish({ commit, cursor }: Checkpoint, topic = 'wine.orders'): Promise<number> {
  const sequence = cursor.sequence + 1;
  const key = String(sequence);
  await commit({
    messages: [{ topic, key, value: Buffer.from(key) }],
    images: [{ key, sequence, image }],
    cursor: { ...cursor, sequence },
  });
  return sequence;
}

const written = (topic = 'wine.orders') => kafka.read(topic).map(({ key }) => key);
const newest = () => JSON.parse(String(kafka.read('wine.cursors').at(-1)!.value)) as Cursor;

describe('a process that finds its task under the id of an older version', () => {
  it('fences the one that still runs, which then stops, and goes on where that was', async () => {
    const old = ofOne('old', 'old');
    const running = await old();
    await publish(running);
    const log = await ofOne('new', 'new')();
    await expect(publish(running)).rejects.toMatchObject(EPOCH);
    await expect(old()).rejects.toMatchObject({ code: 'FENCED' });
    expect(log.cursor).toMatchObject({ sequence: 1, instance: 'new' });
    await publish(log);
    expect(written()).toEqual(['1', '2']);
  });

  it('knows of all that was written until it was fenced', async () => {
    const running = await ofOne('old', 'old')();
    await publish(running);
    const taking = ofOne('new', 'new')();
    await publish(running);
    const log = await taking;
    expect([log.cursor.sequence, log.get('2') !== undefined]).toEqual([2, true]);
  });

  it('is not overtaken by the one that it has fenced, however long it reads back', async () => {
    const old = ofOne('old', 'old');
    const running = await old();
    await publish(running);
    const taking = ofOne('new', 'new');
    const again: unknown[] = [];
    taking.hooks.onRead = async () => {
      await expect(publish(running)).rejects.toThrow();
      await old().catch((error: unknown) => again.push(error));
    };
    const log = await taking();
    expect(again).toMatchObject([{ code: 'FENCED' }]);
    await publish(log);
    expect(written()).toEqual(['1', '2']);
  });

  it('leaves that id for good: a restart fences nobody who has it', async () => {
    await publish(await ofOne('old', 'old')());
    const other = ofOther('other', 'old');
    await other();
    await publish(await ofOne('new', 'new')());
    const log = await other(); // it was fenced, once, and goes on
    await publish(log, 'wine.eu.orders');
    await publish(await ofOne('newer', 'new')());
    await publish(log, 'wine.eu.orders');
    expect([written(), written('wine.eu.orders')]).toEqual([
      ['1', '2', '3'],
      ['1', '2'],
    ]);
    const { refused } = kafka;
    const upgraded = await ofOther('other too', 'new')();
    await publish(upgraded, 'wine.eu.orders');
    await publish(await ofOne('newest', 'new')());
    await publish(upgraded, 'wine.eu.orders');
    expect(kafka.refused).toBe(refused);
  });

  it('that nobody has had yet fences nobody', async () => {
    const log = await ofOther('other', 'old')();
    await ofOne('new', 'new')();
    await publish(log, 'wine.eu.orders');
    expect(kafka.refused).toBe(0);
  });

  it('fences an older version that somebody went back to', async () => {
    await publish(await ofOne('new', 'new')());
    expect(newest().writer?.instance).toBe('new');
    const back = await ofOne('old', 'old')();
    await publish(back);
    expect(newest()).toMatchObject({ instance: 'old', writer: { instance: 'new' } }); // as older versions do
    const log = await ofOne('newer', 'new')();
    await expect(publish(back)).rejects.toMatchObject(EPOCH);
    await publish(log);
    expect(written()).toEqual(['1', '2', '3']);
  });

  it('takes nothing from a process that has taken it over since', async () => {
    await publish(await ofOne('old', 'old')());
    for (const fate of ['refused', 'unknown'] as const) {
      const second = ofOne(`second, ${fate}`, 'new');
      await expect(second(fate)).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
      const third = await ofOne(`third, ${fate}`, 'new')();
      await expect(second()).rejects.toMatchObject({ code: 'FENCED' });
      await publish(third);
    }
  });

  it('goes on after a claim of which it does not know the outcome', async () => {
    await publish(await ofOne('old', 'old')());
    for (const fates of [['refused'], ['left-open'], ['unknown'], ['done', 'unknown']] as const) {
      const opened = ofOne(fates.join(), 'new');
      await expect(opened(...fates)).rejects.toMatchObject({ code: 'COMMIT_FAILED' });
      await publish(await opened());
      await publish(await ofOne(`old after ${fates.join()}`, 'old')());
    }
  });

  it('is left to another one that is quicker', async () => {
    await publish(await ofOne('old', 'old')());
    const both = await Promise.allSettled([ofOne('a', 'new')(), ofOne('b', 'new')()]);
    const logs = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const published = await Promise.allSettled(logs.map((log) => publish(log)));
    expect(published.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(written()).toEqual(['1', '2']);
  });
});

import { describe, expect, it } from 'vitest';
import type { TransactionalLog, Message } from '../../src/sinks/sink.ts';
import type { Offsets } from '../../src/kafka/log.ts';
import { isEpochError } from '../../src/kafka/client/kafka-error.ts';

/** A broker to try, and a topic of one partition that it has, empty. */
export interface Tried {
  readonly broker: TransactionalLog;
  readonly topic: string;
}

const ID = 'contract';

/** What tasks rely on, of whatever broker: the simulated one and the real one are held to it alike. */
export function brokerContract(name: string, open: () => Promise<Tried>): void {
  describe(`the contract of a broker: ${name}`, () => {
    const message = (topic: string, key: string, value: string | null): Message => ({
      topic,
      key,
      value: value === null ? null : Buffer.from(value),
    });
    const read = async ({ broker, topic }: Tried, from: Offsets, to: Offsets) => {
      const found: [string | undefined, string | undefined][] = [];
      await broker.readTail({
        topic,
        from,
        to,
        onMessages: (messages) => {
          for (const { key, value } of messages) found.push([key?.toString(), value?.toString()]);
          return Promise.resolve();
        },
      });
      return found;
    };
    const endOf = async ({ broker, topic }: Tried) => (await broker.ends(topic)).get(0) ?? 0n;
    /** A commit's marker takes a moment to be seen. */
    const reached = (tried: Tried, end: bigint) =>
      expect.poll(() => endOf(tried), { timeout: 10_000 }).toBe(end);

    it('begins empty, and stays where it was when nothing is committed', async () => {
      const tried = await open();
      expect(await endOf(tried)).toBe(0n);
      const sink = await tried.broker.open(`${ID}-${tried.topic}`);
      await sink.close();
      expect(await endOf(tried)).toBe(0n);
      expect(await tried.broker.clusterId()).toBe(await tried.broker.clusterId());
    });

    it('shows a commit whole, in order, and tells where it ends: behind its marker', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const sink = await broker.open(`${ID}-${topic}`);
      const first = await sink.commit([message(topic, 'a', '1'), message(topic, 'b', null)]);
      const second = await sink.commit([message(topic, 'a', '2')]);
      expect([first, second].map((ends) => ends.get(topic)?.get(0))).toEqual([3n, 5n]);
      await reached(tried, 5n);
      const all = await read(tried, new Map(), await broker.ends(topic));
      expect(all).toEqual([
        ['a', '1'],
        ['b', undefined],
        ['a', '2'],
      ]);
      expect(await read(tried, new Map([[0, 3n]]), await broker.ends(topic))).toEqual([['a', '2']]);
      expect(await read(tried, new Map([[0, 5n]]), await broker.ends(topic))).toEqual([]);
      expect((await sink.bounds(topic)).get(0)).toEqual({ low: 0n, high: 5n });
      await sink.close();
    });

    it('knows the newest message of each key, whoever has committed it, by when it is asked', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const newest = async (sink: Awaited<ReturnType<typeof broker.open>>) => {
        await sink.awaitVisible();
        const found = await broker.compacted(topic, async () => (await sink.bounds(topic)).get(0)!);
        const texts = [...found.newest].map(([key, { value }]) => [key, value.toString()]);
        return { next: found.next, ...(Object.fromEntries(texts) as object) };
      };
      const sink = await broker.open(`${ID}-${topic}`);
      await sink.commit([message(topic, 'a', '1'), message(topic, 'b', '1')]);
      expect(await newest(sink)).toEqual({ next: 3n, a: '1', b: '1' });
      const other = await broker.open(`${ID}-${topic}`);
      await other.commit([message(topic, 'a', '2'), message(topic, 'b', null)]);
      expect(await newest(other)).toEqual({ next: 6n, a: '2' });
      await Promise.all([sink.close(), other.close()]);
    });

    it('says that a later try may do, where a topic does not reach as far as it did', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const sink = await broker.open(`${ID}-${topic}`);
      await sink.commit([message(topic, 'a', '1')]);
      await reached(tried, 2n);
      const refused = { code: 'KAFKA_UNREACHABLE' };
      await expect(read(tried, new Map(), new Map([[0, 9n]]))).rejects.toMatchObject(refused);
      await expect(read(tried, new Map([[0, 2n]]), new Map([[0, 9n]]))).rejects.toMatchObject(
        refused,
      );
      await expect(read(tried, new Map([[0, 5n]]), new Map([[0, 9n]]))).rejects.toMatchObject(
        refused,
      );
      await sink.close();
    });

    it('lets nobody commit who was replaced, and says why', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const old = await broker.open(`${ID}-${topic}`);
      await old.commit([message(topic, 'a', 'old')]);
      const other = await broker.open(`${ID}-${topic}`);
      const late = await old.commit([message(topic, 'a', 'late')]).catch((error: unknown) => error);
      expect(late).toMatchObject({ code: 'FENCED' });
      expect(isEpochError(late)).toBe(true);
      const ends = await other.commit([message(topic, 'a', 'new')]);
      const end = ends.get(topic)!.get(0)!;
      await reached(tried, end);
      const all = await read(tried, new Map(), new Map([[0, end]]));
      expect(all).toEqual([
        ['a', 'old'],
        ['a', 'new'],
      ]);
      await Promise.allSettled([old.close(), other.close()]);
    });

    it('lets nobody commit who was replaced, though who did so has closed', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const old = await broker.open(`${ID}-${topic}`);
      await old.commit([message(topic, 'a', '1')]);
      const other = await broker.open(`${ID}-${topic}`);
      const ends = await other.commit([message(topic, 'a', '2')]);
      await other.close();
      const late = await old.commit([message(topic, 'a', 'late')]).catch((error: unknown) => error);
      expect(isEpochError(late)).toBe(true);
      await reached(tried, ends.get(topic)!.get(0)!);
      await old.close();
    });

    it('opens again for whoever was opened last, and for nobody who was replaced since', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const id = `${ID}-${topic}`;
      const first = await broker.open(id);
      await first.commit([message(topic, 'a', '1')]);
      const again = await broker.open(id, first.producer);
      const other = await broker.open(id);
      const late = await broker.open(id, again.producer).catch((error: unknown) => error);
      expect(isEpochError(late)).toBe(true);
      const ends = await other.commit([message(topic, 'a', '2')]);
      await reached(tried, ends.get(topic)!.get(0)!);
      await Promise.allSettled([first.close(), again.close(), other.close()]);
    });

    it('keeps transactional ids apart', async () => {
      const tried = await open();
      const { broker, topic } = tried;
      const one = await broker.open(`${ID}-${topic}-one`);
      const other = await broker.open(`${ID}-${topic}-other`);
      await one.commit([message(topic, 'a', '1')]);
      await other.commit([message(topic, 'b', '2')]);
      await one.commit([message(topic, 'a', '3')]);
      await reached(tried, 6n);
      await Promise.all([one.close(), other.close()]);
    });
  });
}

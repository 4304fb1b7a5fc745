import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { topicEnds } from './topic-ends.ts';
import { PlainProducer } from '../../../src/sinks/producer/plain-producer.ts';
import type { Message, TransactionalSink } from '../../../src/sinks/sink.ts';
import { inEach, readByKafkajs, tailOf, writtenOn } from './producer-topic.ts';
import type { Written } from './producer-topic.ts';
import { scaled } from '../../support/scale.ts';

/** Commits in a row. */
const MANY = scaled(30, 100);
const SOME = scaled(8, 20);

/** By key, the partition of six that Java's client takes: murmur2 as in its own UtilsTest. */
const JAVA: Readonly<Record<string, number>> = {
  '21': 0,
  foobar: 0,
  'a-little-bit-long-string': 2,
  'a-little-bit-longer-string': 5,
  lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8: 5,
  abc: 3,
};

/** What a producer promises on any Kafka. @param brokersOf Known once the tests run; a text is a reason to skip them. */
export function producerContract(name: string, brokersOf: () => readonly string[] | string): void {
  describe(`a producer on ${name}`, () => {
    let written: Written;
    let sink: TransactionalSink;
    beforeAll(async () => {
      const brokers = brokersOf();
      if (typeof brokers === 'string') return;
      written = await writtenOn(brokers);
      sink = await written.open();
    });
    afterAll(() => sink?.close());
    const on = (what: string, test: () => Promise<void>) =>
      it(what, async ({ skip }) => {
        const brokers = brokersOf();
        if (typeof brokers === 'string') return skip(brokers);
        if (sink === undefined) throw new Error('it has not been opened');
        await test();
      });
    /** With a topic of its own. */
    const fresh = async () => writtenOn(brokersOf() as readonly string[]);

    on("puts keys where Java's client does", async () => {
      const { topic, kafka, committed } = written;
      await sink.commit(Object.keys(JAVA).map((key) => ({ topic, key, value: Buffer.from('v') })));
      await committed(Object.keys(JAVA).length);
      const found = (await tailOf(kafka, topic)).map((each) => [String(each.key), each.partition]);
      expect(Object.fromEntries(found)).toEqual(JAVA);
    });

    on(
      'keeps the order, and tells where each partition ends: readers see all of it by then',
      async () => {
        const { kafka, topic, open, message, committed } = await fresh();
        const own = await open();
        const values = Array.from({ length: 500 }, (_, n) => String(n));
        for (let from = 0; from < 500; from += 100) {
          const ends = await own.commit(
            values.slice(from, from + 100).map((each) => message(3, each)),
          );
          await own.awaitVisible();
          expect((await topicEnds(kafka, topic)).get(3)).toBe(ends.get(topic)?.get(3));
        }
        expect((await committed(500))[3]).toEqual(values);
        await own.close();
      },
    );

    on('keeps headers, tombstones, and keys and values of nothing', async () => {
      const { kafka, topic, open } = await fresh();
      const own = await open();
      const headers = { ce_id: '1', größe: 'é🍷', empty: '' };
      const sent: Message[] = [
        { topic, key: 'a', value: Buffer.from('v'), headers },
        { topic, key: 'a', value: null },
        { topic, key: '', value: Buffer.alloc(0) },
        { topic, key: null, value: Buffer.from('keyless') },
      ];
      await own.commit(sent);
      const read = await readByKafkajs(kafka, topic, sent.length);
      const text = (value: Buffer | string | null) => value?.toString() ?? null;
      const plain = ({ key, value, headers = {} }: Pick<Message, 'key' | 'value' | 'headers'>) =>
        JSON.stringify([key, text(value), Object.entries(headers)]);
      const found = read.map(({ key, value, headers = {} }) => {
        const texts = Object.entries(headers).map(([name, each]) => [name, String(each)]);
        return plain({
          key: text(key),
          value,
          headers: Object.fromEntries(texts) as Message['headers'] & {},
        });
      });
      expect(found.toSorted()).toEqual(sent.map(plain).toSorted());
      await own.close();
    });

    on('commits more than a batch holds, in the order given', async () => {
      const { open, message, committed, kafka, topic } = await fresh();
      const own = await open();
      // Random bytes: what could be compressed would fit.
      const large = Array.from({ length: 40 }, (_, n) =>
        message(
          n % 2,
          Buffer.concat([Buffer.from(`${String(n).padStart(3)} `), randomBytes(100_000)]),
        ),
      );
      const ends = await own.commit(large);
      const found = await committed(large.length);
      const numbers = found.map((values) => values.map((value) => Number(value.slice(0, 3))));
      expect(numbers[0]).toEqual(Array.from({ length: 20 }, (_, n) => 2 * n));
      expect(numbers[1]).toEqual(Array.from({ length: 20 }, (_, n) => 2 * n + 1));
      const there = await topicEnds(kafka, topic);
      expect(ends.get(topic)).toEqual(new Map([0, 1].map((each) => [each, there.get(each)])));
      await own.close();
    });

    for (const isAwaited of [true, false]) {
      on(`commits again and again, seen ${isAwaited}, and nothing is there twice`, async () => {
        const { open, page, committed } = await fresh();
        const own = await open();
        const values = Array.from({ length: MANY }, (_, n) => String(n));
        for (const value of values) {
          await own.commit(page(value));
          if (isAwaited) await own.awaitVisible();
        }
        expect(await committed(6 * values.length)).toEqual(inEach(...values));
        await own.close();
      });
    }

    on('has shown readers what was committed when that is said', async () => {
      const { kafka, topic, open, page } = await fresh();
      const own = await open();
      for (let count = 6; count <= 6 * SOME; count += 6) {
        await own.commit(page('1'));
        await own.awaitVisible();
        expect(await tailOf(kafka, topic)).toHaveLength(count);
      }
      await own.close();
    });

    on('shows the next one of its id what was committed, waited for or not', async () => {
      const { kafka, topic, open, page } = await fresh();
      for (const count of [6, 12, 18]) {
        const own = await open();
        expect(await tailOf(kafka, topic)).toHaveLength(count - 6);
        await own.commit(page('1'));
        await own.close();
      }
    });

    on(
      'is fenced by the next one of its id, and what it had not committed is not there',
      async () => {
        const { open, page, committed } = await fresh();
        const first = await open();
        await first.commit(page('1'));
        const next = await open();
        await expect(first.commit(page('lost'))).rejects.toMatchObject({
          code: 'FENCED',
          context: { epoch: true },
        });
        await next.commit(page('2'));
        expect(await committed(12)).toEqual(inEach('1', '2'));
        await next.close();
      },
    );

    on('takes the place of the one before by its own identity, and of no other', async () => {
      const { open, page, committed } = await fresh();
      const first = await open();
      await first.commit(page('1'));
      const next = await open(first.producer);
      await next.commit(page('2'));
      const foreign = await open();
      await expect(open(next.producer)).rejects.toMatchObject({ context: { epoch: true } });
      await foreign.commit(page('3'));
      expect(await committed(18)).toEqual(inEach('1', '2', '3'));
      await Promise.all([first, next, foreign].map((each) => each.close()));
    });

    on('leaves nothing of a commit that it was closed in', async () => {
      const { open, page, committed } = await fresh();
      const first = await open();
      const done = first.commit(page('lost')).catch((error: unknown) => error);
      await first.close();
      expect(await done).toMatchObject({ code: 'COMMIT_FAILED' });
      const next = await open();
      await next.commit(page('1'));
      expect(await committed(6)).toEqual(inEach('1'));
      await next.close();
    });

    on('without transactions sends each message once, in order', async () => {
      const { kafka, topic, message, committed } = await fresh();
      const producer = new PlainProducer(kafka);
      const values = Array.from({ length: 50 }, (_, n) => String(n));
      await Promise.all(values.map((value) => producer.send(topic, message(4, value))));
      expect((await committed(50))[4]).toEqual(values);
      producer.close();
    });
  });
}

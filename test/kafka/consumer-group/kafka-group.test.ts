import type { Kafka } from 'kafkajs';
import { asyncScheduler, NEVER, ReplaySubject } from 'rxjs';
import { expect, it, vi, afterEach } from 'vitest';
import kafkajs from 'kafkajs';
import {
  startAtEnd,
  registerKafkajsCodecs,
} from '../../../src/kafka/consumer-group/kafka-group.ts';
import type { ConsumerGroupStart } from '../../../src/kafka/consumer-group/kafka-group.ts';
import { hurriedTime } from '../../support/hurried-time.ts';

/** A group without offsets: others lead it until so many have joined, then the one that joins does. */
function group(leadsAfter: number) {
  let joined = 0;
  let connected = 0;
  let offset = '-1';
  const lacking = () =>
    Promise.resolve(offset === '-1' ? [{ topic: 't', partition: 0, offset: '7' }] : []);
  const consumer = () => {
    const listeners = new Map<string, (event: object) => void>();
    return {
      events: { GROUP_JOIN: 'joined', CRASH: 'crash' },
      on: (name: string, listener: (event: object) => void) => listeners.set(name, listener),
      connect: () => Promise.resolve(void (connected += 1)),
      subscribe: () => Promise.resolve(),
      run: async () => {
        await new Promise(setImmediate); // as any answer of a broker
        joined += 1;
        if (leadsAfter >= 0) {
          listeners.get('joined')!({ payload: { isLeader: joined > leadsAfter } });
        }
      },
      commitOffsets: ([at]: readonly { offset: string }[]) => {
        offset = at!.offset;
        return Promise.resolve();
      },
      disconnect: () => Promise.resolve(void (connected -= 1)),
    };
  };
  return {
    kafka: { consumer } as object as Kafka,
    lacking,
    joined: () => joined,
    connected: () => connected,
    offset: () => offset,
  };
}

const start = ({ kafka, lacking }: Pick<ConsumerGroupStart, 'kafka' | 'lacking'>) => ({
  kafka,
  lacking,
  topic: 't',
  member: { groupId: 'g' },
  leave$: NEVER,
  scheduler: asyncScheduler,
});

it('pauses before it asks again whether the leader has written the offsets', async () => {
  const { scheduler, waits } = hurriedTime();
  const others = group(3);
  expect(await startAtEnd({ ...start(others), scheduler })).toBe(true);
  expect(others.joined()).toBe(4);
  expect(others.offset()).toBe('7');
  expect(waits).toEqual([250, 250, 250, 250]);
  expect(others.connected()).toBe(0);
});

it('stops between two tries when the member is to leave', async () => {
  const leave$ = new ReplaySubject<void>(1);
  const others = group(Infinity);
  const { scheduler } = hurriedTime();
  const started = startAtEnd({ ...start(others), leave$, scheduler });
  await vi.waitUntil(() => others.joined() > 2);
  leave$.next();
  expect(await started).toBe(false);
  expect(others.connected()).toBe(0);
});

it('stops while the group is not joined yet when the member is to leave', async () => {
  const leave$ = new ReplaySubject<void>(1);
  const nobody = group(-1); // joining takes for ever
  const started = startAtEnd({ ...start(nobody), leave$ });
  await vi.waitUntil(() => nobody.joined() === 1);
  leave$.next();
  expect(await started).toBe(false);
  expect(nobody.connected()).toBe(0);
});

it('joins nothing when the member was to leave before', async () => {
  const leave$ = new ReplaySubject<void>(1);
  leave$.next();
  const others = group(0);
  expect(await startAtEnd({ ...start(others), leave$ })).toBe(false);
  expect(others.joined()).toBe(0);
});

interface Codec {
  readonly decompress: (bytes: Buffer) => Promise<Buffer>;
  readonly compress: (encoder: unknown) => Promise<Buffer>;
}

const codecs: Record<number, (() => unknown) | undefined> = kafkajs.CompressionCodecs;
const { GZIP, Snappy, LZ4, ZSTD } = kafkajs.CompressionTypes;
const own = { ...codecs };
afterEach(() => void Object.assign(codecs, own));

it('lets kafkajs read snappy, lz4 and zstd, and leaves its gzip as it is', async () => {
  registerKafkajsCodecs();
  const snappy = codecs[Snappy]!() as Codec;
  expect(await snappy.decompress(Buffer.of(3, 8, 97, 98, 99))).toEqual(Buffer.from('abc'));
  await expect(snappy.compress({})).rejects.toThrow('can decompress snappy');
  expect([LZ4, ZSTD].map((type) => typeof (codecs[type]!() as Codec).decompress)).toEqual([
    'function',
    'function',
  ]);
  expect(codecs[GZIP]).toBe(own[GZIP]);
});

it('leaves a codec alone that the program has set', () => {
  const theirs = () => ({ decompress: (bytes: Buffer) => bytes });
  codecs[ZSTD] = theirs;
  registerKafkajsCodecs();
  expect(codecs[ZSTD]).toBe(theirs);
});

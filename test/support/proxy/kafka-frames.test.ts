import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { frame, int, request } from './frame-of.ts';
import {
  commits,
  correlationOf,
  errorCodeOf,
  FrameReader,
  setTransactionTimeout,
  withPorts,
} from './kafka-frames.ts';

describe('FrameReader', () => {
  it('puts frames together however they are split and joined', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1, maxLength: 200 }),
        (bodies, cuts) => {
          const frames = bodies.map((body) => Buffer.concat([int(4, body.length), body]));
          const all = Buffer.concat(frames);
          const reader = new FrameReader();
          const read: Buffer[] = [];
          for (let at = 0, n = 0; at < all.length; n++) {
            const length = cuts[n % cuts.length]!;
            read.push(...reader.push(all.subarray(at, at + length)));
            at += length;
          }
          expect(read).toEqual(frames);
        },
      ),
    );
  });
});

describe('readRequest', () => {
  it('knows which request it is, and whose', () => {
    expect(request(26, 1, 'task', [4, 5], [4, 5], [2, 0], [1, 1])).toMatchObject({
      api: 'EndTxn',
      version: 1,
      correlationId: 77,
      id: 'task',
    });
    expect(request(22, 1, null, [4, 60_000])).toMatchObject({ api: 'InitProducerId', id: null });
    expect(request(14, 3, 'group', [4, 1])).toMatchObject({ api: 'SyncGroup', id: 'group' });
    expect(request(1, 11, [4, -1])).toMatchObject({ api: 'Fetch', id: null });
    expect(request(18, 2)).toMatchObject({ api: 'ApiVersions', id: null });
    expect(request(60, 0, 'x')).toMatchObject({ api: undefined, id: null });
  });
});

describe('a request with compact texts', () => {
  /** Version 4 of InitProducerId: a tagged field's byte behind the client's id, and at the end. */
  const init = (id: string | null, timeoutMs: number) => {
    const length = id === null ? 0 : Buffer.byteLength(id) + 1;
    const varint = length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
    return request(
      ...[22, 4],
      ...[Buffer.of(0), Buffer.from(varint), Buffer.from(id ?? '')],
      ...([
        [4, timeoutMs],
        [4, 0],
        [4, 7],
        [2, 3],
        [1, 0],
      ] as const),
    );
  };

  it.each(['task', 'a'.repeat(300), null])('is known by its id, too: %s', (id) => {
    expect(init(id, 1)).toMatchObject({ api: 'InitProducerId', version: 4, id });
  });

  it('has its time of transactions changed, and its answer read', () => {
    const changed = init('task', 60_000);
    setTransactionTimeout(changed, 3_000);
    expect(changed.frame).toEqual(init('task', 3_000).frame);
    const answer = frame([4, 77], [1, 0], [4, 0], [2, 90], [4, 0], [4, 7], [2, 3], [1, 0]);
    expect(errorCodeOf(changed, answer)).toBe(90);
  });
});

it('tells a commit from an abort', () => {
  const end = (commit: number) => request(26, 1, 'task', [4, 0], [4, 7], [2, 3], [1, commit]);
  expect([commits(end(1)), commits(end(0))]).toEqual([true, false]);
});

describe('setTransactionTimeout', () => {
  it('changes how long a transaction may take, and nothing else', () => {
    const init = request(22, 1, 'task', [4, 60_000]);
    setTransactionTimeout(init, 3_000);
    expect(init.frame).toEqual(request(22, 1, 'task', [4, 3_000]).frame);
    expect(() => setTransactionTimeout(request(26, 1, 'task'), 1)).toThrow(TypeError);
  });
});

describe('an answer', () => {
  it('names its request, and how that went', () => {
    const ended = frame([4, 77], [4, 0], [2, 47]);
    expect(correlationOf(ended)).toBe(77);
    expect(errorCodeOf(request(26, 1, 'task'), ended)).toBe(47);
    expect(errorCodeOf(request(24, 1, 'task'), ended)).toBeUndefined();
  });

  it('to a Produce has a code for each partition: the first that is wrong is told', () => {
    const produce = request(0, 7, 'task', [2, -1], [4, 30_000]);
    expect(produce).toMatchObject({ api: 'Produce', id: 'task' });
    const partition = (index: number, code: number) =>
      [[4, index], [2, code], Buffer.alloc(24)] as const;
    const answer = (...codes: readonly [number, number, number]) =>
      frame(
        ...[[4, 77] as const, [4, 2] as const],
        ...['orders', [4, 2] as const, ...partition(0, codes[0]), ...partition(3, codes[1])],
        ...['cursors', [4, 1] as const, ...partition(0, codes[2])],
        [4, 0],
      );
    expect(errorCodeOf(produce, answer(0, 0, 0))).toBe(0);
    expect(errorCodeOf(produce, answer(0, 6, 0))).toBe(6);
    expect(errorCodeOf(produce, answer(0, 0, 46))).toBe(46);
    expect(errorCodeOf(request(0, 9, 'task'), answer(0, 0, 46))).toBeUndefined();
  });

  it('names the proxy of each broker, in any version of Metadata that clients here ask for', () => {
    const table: Readonly<Record<string, number>> = { 'host:9092': 1234, 'host:9093': 1235 };
    const portFor = (broker: string) => table[broker]!;
    const brokers = (version: number, ports: readonly number[]) =>
      frame(
        [4, 77],
        ...(version < 3 ? [] : [[4, 0] as const]),
        [4, ports.length],
        ...ports.flatMap((port, k) => [[4, k] as const, 'host', [4, port] as const, null]),
        ...(version < 2 ? [] : ['cluster']),
        [4, 9],
      );
    for (const version of [1, 2, 3, 4, 5, 6]) {
      const answer = withPorts(request(3, version), brokers(version, [9092, 9093]), portFor);
      expect(answer).toEqual(brokers(version, [1234, 1235]));
    }
  });

  it('gets the port of the proxy wherever it tells of a broker', () => {
    const brokers = (port: number) =>
      frame(
        [4, 77],
        [4, 0],
        [4, 2],
        [4, 1],
        'host',
        [4, port],
        null,
        [4, 2],
        'other',
        [4, port],
        'rack',
        [4, 9],
      );
    expect(withPorts(request(3, 6), brokers(9092), () => 1234)).toEqual(brokers(1234));
    const coordinator = (port: number, message: string | null) =>
      frame([4, 77], [4, 0], [2, 0], message, [4, 1], 'host', [4, port]);
    expect(withPorts(request(10, 2, 'task'), coordinator(9092, null), () => 1234)).toEqual(
      coordinator(1234, null),
    );
    const none = coordinator(-1, 'not there yet');
    expect(withPorts(request(10, 2, 'task'), none, () => 1234)).toEqual(none);
    const other = frame([4, 77], [4, 0], [2, 0]);
    expect(withPorts(request(26, 1, 'task'), other, () => 1234)).toBe(other);
    expect(() => withPorts(request(3, 12), brokers(9092), () => 1234)).toThrow(RangeError);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { frame, int, request } from './frame-of.ts';
import {
  correlationOf,
  errorCodeOf,
  FrameReader,
  setTransactionTimeout,
  withPort,
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
    expect(request(1, 11, [4, -1])).toMatchObject({ api: 'Fetch', id: null });
    expect(request(18, 2)).toMatchObject({ api: 'ApiVersions', id: null });
    expect(request(60, 0, 'x')).toMatchObject({ api: undefined, id: null });
  });
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
    expect(withPort(request(3, 6), brokers(9092), 1234)).toEqual(brokers(1234));
    const coordinator = (port: number, message: string | null) =>
      frame([4, 77], [4, 0], [2, 0], message, [4, 1], 'host', [4, port]);
    expect(withPort(request(10, 2, 'task'), coordinator(9092, null), 1234)).toEqual(
      coordinator(1234, null),
    );
    const none = coordinator(-1, 'not there yet');
    expect(withPort(request(10, 2, 'task'), none, 1234)).toEqual(none);
    const other = frame([4, 77], [4, 0], [2, 0]);
    expect(withPort(request(26, 1, 'task'), other, 1234)).toBe(other);
    expect(() => withPort(request(3, 12), brokers(9092), 1234)).toThrow(RangeError);
  });
});

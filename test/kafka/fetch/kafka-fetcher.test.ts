import { expect, it } from 'vitest';
import { readFetchResponse } from '../../../src/kafka/fetch/kafka-fetcher.ts';

const int16 = (value: number) => Buffer.of(value >> 8, value & 0xff);
const int32 = (value: number) => Buffer.concat([int16(value >> 16), int16(value & 0xffff)]);
const int64 = (value: number) => Buffer.concat([int32(value < 0 ? -1 : 0), int32(value)]);
const text = (value: string) => Buffer.concat([int16(value.length), Buffer.from(value)]);

/** A partition that has its end, where its log begins, aborted transactions and records. */
const partition = (number: number, aborted: Buffer, records: Buffer) =>
  Buffer.concat([int32(number), int16(0), int64(90), int64(80), int64(10), aborted, records]);

it('reads partitions, with what was aborted in them', () => {
  const aborted = [int32(2), int64(7), int64(30), int64(8), int64(40)];
  const answer = Buffer.concat([
    ...[int32(50), int16(0), int32(0), int32(1), text('wine.orders'), int32(2)],
    partition(3, Buffer.concat(aborted), Buffer.concat([int32(4), Buffer.from('abcd')])),
    partition(0, int32(-1), int32(-1)), // nothing aborted, and nothing there
  ]);
  const none = { errorCode: 0, highWatermark: 90n, lastStableOffset: 80n };
  expect(readFetchResponse(answer)).toEqual({
    clientSideThrottleTime: 50,
    errorCode: 0,
    partitions: [
      {
        ...none,
        partition: 3,
        aborted: [
          { producerId: 7n, firstOffset: 30n },
          { producerId: 8n, firstOffset: 40n },
        ],
        records: Buffer.from('abcd'),
      },
      { ...none, partition: 0, aborted: [], records: Buffer.alloc(0) },
    ],
  });
});

it('reads that a partition is led by another broker, and an answer of a broker that wants a rest', () => {
  const moved = [int32(0), int16(6), int64(-1), int64(-1), int64(-1), int32(-1), int32(-1)];
  const head = [int32(0), int16(0), int32(0), int32(1), text('t'), int32(1)];
  const [answer] = readFetchResponse(Buffer.concat([...head, ...moved])).partitions;
  expect(answer).toMatchObject({ errorCode: 6, records: Buffer.alloc(0) });
  const rest = readFetchResponse(Buffer.concat([int32(900), int16(0), int32(0), int32(0)]));
  expect(rest).toEqual({ clientSideThrottleTime: 900, errorCode: 0, partitions: [] });
});

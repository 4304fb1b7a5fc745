import Decoder from 'kafkajs/src/protocol/decoder.js';
import Encoder from 'kafkajs/src/protocol/encoder.js';
import { expect, it } from 'vitest';
import type { Brokers } from '../../../src/kafka/client/brokers.ts';
import { protocolReader } from '../../../src/kafka/client/protocol.ts';
import type { Call } from '../../../src/kafka/client/protocol.ts';
import { describeGroup, groupOffsets } from '../../../src/kafka/membership/group.ts';

const enc = () => new Encoder();

/** A coordinator that answers with these bytes, and what it was asked. */
function coordinator(answer: Encoder) {
  const asked: { name: string; version: number; body: Buffer }[] = [];
  const say = <T>(call: Call<T>, bytes: Encoder) => {
    asked.push(call);
    return Promise.resolve(call.read(protocolReader(bytes.buffer)));
  };
  const found = enc().writeInt16(0).writeString(null).writeInt32(1).writeString('h').writeInt32(9);
  const brokers: Partial<Brokers> = {
    sendToAny: (call) => say(call, found),
    send: (address, call) => {
      expect(address).toEqual({ host: 'h', port: 9 });
      return say(call, answer);
    },
  };
  return { asked, brokers: brokers as Brokers };
}

it('tells what the members of a group have told and were given', async () => {
  const member = (id: string, told: string, given: string) =>
    enc()
      .writeString(id)
      .writeString('client')
      .writeString('host')
      .writeBytes(Buffer.from(told))
      .writeBytes(Buffer.from(given));
  const group = (errorCode: number) =>
    enc().writeArray([
      enc()
        .writeInt16(errorCode)
        .writeString('g')
        .writeString('Stable')
        .writeString('cellarstream')
        .writeString('accounts')
        .writeArray([member('a', 'told', 'given'), member('b', '', '')])
        .writeInt32(8),
    ]);
  const { brokers, asked } = coordinator(group(0));
  expect(await describeGroup(brokers, 'g')).toEqual({
    state: 'Stable',
    members: [
      { metadata: Buffer.from('told'), assignment: Buffer.from('given') },
      { metadata: Buffer.alloc(0), assignment: Buffer.alloc(0) },
    ],
    operations: 8,
  });
  const request = new Decoder(asked.at(-1)!.body);
  expect(request.readArray((each) => each.readString())).toEqual(['g']);
  expect(request.readInt8()).toBe(1); // operations are asked for
  await expect(describeGroup(coordinator(group(30)).brokers, 'g')).rejects.toMatchObject({
    type: 'GROUP_AUTHORIZATION_FAILED',
  });
});

it('tells which offsets a group has', async () => {
  const partition = (id: number, offset: number, errorCode = 0) =>
    enc().writeInt32(id).writeInt64(offset).writeInt32(-1).writeString('').writeInt16(errorCode);
  const answer = (partitions: readonly Encoder[], errorCode = 0) =>
    enc()
      .writeArray([enc().writeString('t').writeArray(partitions)])
      .writeInt16(errorCode);
  const { brokers, asked } = coordinator(answer([partition(0, 7), partition(1, -1)]));
  expect(await groupOffsets(brokers, 'g', 't', [0, 1])).toEqual([7n, -1n]);
  const { body, version } = asked.at(-1)!;
  const request = new Decoder(body);
  expect(version).toBe(5);
  expect(request.readString()).toBe('g');
  expect(
    request.readArray((each) => [each.readString(), each.readArray((of) => of.readInt32())]),
  ).toEqual([['t', [0, 1]]]);
  for (const refused of [answer([], 16), answer([partition(0, -1, 16)])]) {
    const asking = groupOffsets(coordinator(refused).brokers, 'g', 't', [0]);
    await expect(asking).rejects.toMatchObject({ type: 'NOT_COORDINATOR' });
  }
});

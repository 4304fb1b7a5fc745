import { describe, expect, it } from 'vitest';
import { fleetMessage, applyRecord, parseFleetRecord } from '../../src/fleet/fleet-record.ts';
import type { AccountTopicState, FleetRecord } from '../../src/fleet/fleet-record.ts';

const AT = '2026-05-06T07:08:09.000Z';
const of = (instance: string) => ({ account: 'east', instance, name: `${instance}-host`, at: AT });
const owner = (instance: string, generation: number) => ({
  instance,
  name: `${instance}-host`,
  generation,
});
const runs = (instance: string, generation: number): FleetRecord => ({
  ...of(instance),
  type: 'runs',
  generation,
  losses: [],
});
const takes = (instance: string, generation: number): FleetRecord => ({
  ...of(instance),
  type: 'takes',
  generation,
  losses: [],
});
const asks = (instance: string, generation: number, whom: string): FleetRecord => ({
  ...of(instance),
  type: 'asks',
  generation,
  owner: owner(whom, 1),
});
const released = (instance: string): FleetRecord => ({ ...of(instance), type: 'released' });

const after = (...records: FleetRecord[]) =>
  records.reduce<AccountTopicState | undefined>(applyRecord, undefined);

describe('what is known of an account', () => {
  it('is who runs it, until that one has released it', () => {
    expect(after(runs('a', 1))).toMatchObject({
      owner: owner('a', 1),
      releaseRequest: undefined,
      updatedAt: Date.parse(AT),
    });
    expect(after(runs('a', 1), released('a'))?.owner).toBeUndefined();
    expect(after(runs('a', 1), released('a'), runs('b', 2))?.owner).toEqual(owner('b', 2));
  });

  it('is who asks for it', () => {
    const word = after(runs('a', 1), asks('b', 2, 'a'));
    expect(word).toMatchObject({
      owner: owner('a', 1),
      releaseRequest: { instance: 'b', generation: 2 },
    });
    expect(after(runs('a', 1), asks('b', 2, 'a'), runs('b', 2))?.releaseRequest).toBeUndefined();
  });

  it('is there though compaction has left the question alone', () => {
    expect(after(asks('b', 2, 'a'))?.owner).toEqual(owner('a', 1));
  });

  it('is not changed by who is late', () => {
    expect(after(runs('b', 2), released('a'))?.owner).toEqual(owner('b', 2));
    expect(after(runs('b', 3), takes('a', 2))?.owner).toEqual(owner('b', 3));
    expect(after(runs('b', 3), asks('a', 2, 'c'))?.releaseRequest).toBeUndefined();
    expect(after(runs('a', 1), released('a'), asks('b', 2, 'a'))?.owner).toBeUndefined();
  });

  it('is who is about to run it', () => {
    expect(after(takes('a', 1))?.owner).toEqual(owner('a', 1));
    expect(after(released('a'), takes('b', 2))?.owner).toEqual(owner('b', 2));
  });

  it('has not claimed it before it says so, whoever asks meanwhile', () => {
    expect(after(takes('a', 1))?.isClaimPending).toBe(true);
    expect(after(takes('a', 1), asks('b', 2, 'a'))?.isClaimPending).toBe(true);
    expect(after(takes('a', 1), runs('a', 1))?.isClaimPending).toBe(false);
  });

  it('has claimed it though its announcement comes late, and not where it is announced anew', () => {
    expect(after(runs('a', 1), takes('a', 1))?.isClaimPending).toBe(false);
    const again = { ...takes('a', 1), at: '2026-06-01T13:00:00.000Z' };
    expect(after(runs('a', 1), again)?.isClaimPending).toBe(true);
  });
});

it('survives its way through the topic; what is none is passed over', () => {
  const record = asks('b', 2, 'a');
  const { topic, key, value } = fleetMessage('wine.fleet', record);
  expect([topic, key]).toEqual(['wine.fleet', 'east']);
  expect(parseFleetRecord(value)).toEqual(record);
  for (const other of ['', '{', '{}', '{"type":"runs"}', 'null']) {
    expect(parseFleetRecord(Buffer.from(other))).toBeUndefined();
  }
  expect(parseFleetRecord(null)).toBeUndefined();
});

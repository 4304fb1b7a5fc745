import { describe, expect, it } from 'vitest';
import { TableCheck } from '../../src/consumers/check-certificate.ts';
import type { PublishedCertificate } from '../../src/consumers/certificates.ts';
import type { CertifiedTopic, CheckedCertificate } from '../../src/consumers/check-certificate.ts';
import { certificateOf } from '../support/certificate.ts';
import { scaled } from '../support/scale.ts';
import { tallyOf, WrittenList } from './written-list.ts';

const SEEDS = scaled(500, 10_000);
const NOW = 1_000_000;
const LAG = 10_000;

const topic: CertifiedTopic = {
  bounds: new Map([0, 1].map((partition) => [partition, { low: 0n, high: 1_000n }])),
  compactionLagMs: LAG,
};

/** What the service would say of a moment. */
function certified(list: WrittenList, moment: number, publishedAt = NOW): PublishedCertificate {
  const partitions = [...list.positionsAt(moment)].map(
    ([partition, position]) =>
      [partition, { position, ...tallyOf(list.rowsAt(moment, partition)) }] as const,
  );
  return { certificate: certificateOf(Object.fromEntries(partitions)), publishedAt };
}

/** What a table that has come to a moment says of a certificate of that, or an earlier one. */
function judged(
  list: WrittenList,
  moment: number,
  published: PublishedCertificate,
  { facts = topic, leftOut = -1 }: { facts?: CertifiedTopic; leftOut?: number } = {},
): CheckedCertificate {
  const check = new TableCheck(facts);
  list.events.slice(0, moment).forEach(({ partition, offset, key, event }, nth) => {
    if (nth !== leftOut) check.apply(partition, offset, key, event);
  });
  return check.judge(published, NOW);
}

describe('a table', () => {
  it(`agrees with each certificate that it has passed, ${SEEDS} times`, () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const list = new WrittenList(seed);
      const moment = list.moment();
      const { checked } = judged(list, list.moment(moment), certified(list, moment));
      expect([seed, checked]).toEqual([seed, 'agrees']);
    }
  });

  it(`disagrees when an event is missing that is the newest of its key, ${SEEDS} times`, () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const list = new WrittenList(seed);
      const moment = list.moment();
      const rows = list.rowsAt(moment);
      const newest = list.events.findIndex(
        ({ key, event }) => event !== null && rows.get(key) === event.source.sequence,
      );
      if (newest < 0) continue;
      const { checked, partitions } = judged(list, list.moment(moment), certified(list, moment), {
        leftOut: newest,
      });
      expect([seed, checked]).toEqual([seed, 'disagrees']);
      const wrong = partitions.filter((one) => one.checked === 'disagrees');
      expect(wrong.map(({ partition }) => partition)).toEqual([list.events[newest]!.partition]);
    }
  });

  const list = new WrittenList(5);
  const all = list.events.length;

  it('does not check what is older than the compaction lag', () => {
    expect(judged(list, all, certified(list, all, NOW - LAG + 1)).checked).toBe('agrees');
    expect(judged(list, all, certified(list, all, NOW - LAG)).checked).toBe('not checked');
  });

  it('does not check positions before the beginning of the topic', () => {
    const published = certified(list, all);
    const { position } = published.certificate.partitions[1]!;
    const bounds = new Map(topic.bounds).set(1, { low: BigInt(position + 1), high: 1_000n });
    const check = new TableCheck({ ...topic, bounds });
    for (const { partition, offset, key, event } of list.events) {
      if (partition === 0) check.apply(partition, offset, key, event);
    }
    expect(check.judge(published, NOW).checked).toBe('not checked');
  });

  it('does not check what is said of another number of partitions', () => {
    const bounds = new Map(topic.bounds).set(2, { low: 0n, high: 0n });
    const { checked, why } = judged(list, all, certified(list, all), {
      facts: { ...topic, bounds },
    });
    expect([checked, why]).toEqual(['not checked', expect.stringContaining('3 partitions')]);
  });

  it('does not check what it passed long ago', () => {
    const check = new TableCheck(topic);
    const events = 25_000;
    for (let offset = 0; offset < events; offset++) {
      check.apply(0, offset, 'a', { op: 'u', source: { sequence: offset } });
    }
    const at = (position: number) => {
      const empty = { position: 0, ...tallyOf(new Map()) };
      const one = { position, ...tallyOf(new Map([['a', position - 1]])) };
      const certificate = certificateOf({ 0: one, 1: empty });
      return check.judge({ certificate, publishedAt: NOW }, NOW).checked;
    };
    expect([at(events), at(events - 10_000), at(1)]).toEqual(['agrees', 'agrees', 'not checked']);
  });
});

import { describe, expect, it } from 'vitest';
import { topicTable } from '../../../src/schemas/events/topics.ts';
import { findingText, topicFindings } from '../../../src/schemas/events/topic-findings.ts';
import type { ExistingTopic } from '../../../src/schemas/events/topic-findings.ts';
import { ORDERS } from '../../support/orders.ts';

const DAY_MS = 86_400_000;

/** What is found of a topic of three brokers that is there with these settings beside those it is made with. */
function found(
  name: string,
  settings: Readonly<Record<string, string>> = {},
  more: Partial<ExistingTopic> & { readonly brokers?: number } = {},
) {
  const { brokers = 3, ...state } = more;
  const specs = topicTable({
    prefix: 'wine',
    lists: [ORDERS],
    partitions: 6,
    replication: Math.min(3, brokers),
  });
  const spec = specs.find(({ topic }) => topic === `wine.${name}`)!;
  const made = new Map([
    ['max.message.bytes', '1048588'],
    ['unclean.leader.election.enable', 'false'],
    ['min.insync.replicas', '1'],
    ...spec.configEntries.map((entry) => [entry.name, entry.value] as const),
    ...Object.entries(settings),
  ]);
  const replication = spec.replicationFactor;
  const topic = { partitions: spec.numPartitions, replication, ...state, settings: made };
  const orders = { partitions: 6, replication, settings: made };
  return topicFindings(spec, topic, new Map([['wine.orders', orders]]), brokers);
}

const told = (...args: Parameters<typeof found>) =>
  found(...args).map((each) => `${each.isRefused ? 'refused' : 'unwise'}: ${findingText(each)}`);

describe('topicFindings', () => {
  it.each(['orders', 'order-status-changes', 'dead-letters', 'cursors', 'signals'])(
    'finds nothing in %s as it is made, nor in more of everything',
    (name) => {
      expect(told(name)).toEqual([]);
      expect(told(name, {}, { brokers: 1 })).toEqual([]);
      const more = { 'max.message.bytes': '9000000', 'min.insync.replicas': '3' };
      expect(told(name, more, { replication: 5 })).toEqual([]);
    },
  );

  it.each([
    ['orders', 'delete', 'compact'],
    ['orders', 'compact,delete', 'compact'],
    ['order-status-changes', 'compact', 'delete'],
    ['dead-letters', 'compact', 'delete'],
    ['cursors', 'delete', 'compact'],
    ['signals', 'compact,delete', 'delete'],
  ])('refuses %s with cleanup.policy=%s', (name, policy, wanted) => {
    const [line, ...others] = told(name, { 'cleanup.policy': policy });
    expect(others).toEqual([]);
    expect(line).toMatch(
      `refused: wine.${name} has cleanup.policy=${policy}, it must be ${wanted} (`,
    );
  });

  it.each(['cursors', 'signals'])('refuses a second partition of %s', (name) => {
    expect(told(name, {}, { partitions: 2 })).toEqual([
      `refused: wine.${name} has 2 partitions, it must be 1 (its messages need a total order)`,
    ]);
  });

  it('takes another number of partitions as it is, but not two for topics of the same keys', () => {
    expect(told('orders', {}, { partitions: 12 })).toEqual([]);
    expect(told('dead-letters', {}, { partitions: 12 })).toEqual([]);
    expect(told('order-status-changes', {}, { partitions: 12 })).toEqual([
      'unwise: wine.order-status-changes has 12 partitions, 6 is wanted: as wine.orders has: consumers that join them by key need equal numbers of partitions',
    ]);
  });

  it('says what shortens the history that is promised, and nothing of what compaction ignores', () => {
    expect(told('orders', { 'retention.ms': '1', 'retention.bytes': '1' })).toEqual([]);
    expect(told('orders', { 'min.compaction.lag.ms': String(29 * DAY_MS) })).toEqual([
      expect.stringContaining('min.compaction.lag.ms=2505600000, 2592000000 is wanted'),
    ]);
    const kept = { 'retention.ms': String(7 * DAY_MS), 'retention.bytes': '1000' };
    expect(told('order-status-changes', kept)).toEqual([
      expect.stringContaining(
        'unwise: wine.order-status-changes has retention.ms=604800000, -1 is wanted',
      ),
      expect.stringContaining(
        'unwise: wine.order-status-changes has retention.bytes=1000, -1 is wanted',
      ),
    ]);
    expect(told('signals', { 'retention.ms': '1000' })).toEqual([]);
    expect(told('dead-letters', { 'retention.ms': '1000' })).toEqual([]);
  });

  it('refuses what takes hardly an event, and says what takes no large one', () => {
    expect(told('orders', { 'max.message.bytes': '65535' })).toEqual([
      expect.stringMatching(/^refused: .*max\.message\.bytes=65535, it must be 1048588/),
    ]);
    expect(told('orders', { 'max.message.bytes': '65536' })).toEqual([
      expect.stringMatching(/^unwise: .*max\.message\.bytes=65536, 1048588 is wanted/),
    ]);
  });

  it('says where a broker that dies takes along what was confirmed', () => {
    expect(told('orders', { 'min.insync.replicas': '1' })).toEqual([
      expect.stringMatching(/^unwise: .*min\.insync\.replicas=1, 2 is wanted/),
    ]);
    expect(told('orders', { 'min.insync.replicas': '2' }, { replication: 1 })).toEqual([
      expect.stringMatching(/^unwise: .*min\.insync\.replicas=2, 1 is wanted/),
      expect.stringMatching(/^unwise: .*replication\.factor=1, 3 is wanted/),
    ]);
    expect(told('orders', { 'unclean.leader.election.enable': 'true' })).toEqual([
      expect.stringMatching(/^unwise: .*unclean\.leader\.election\.enable=true, false is wanted/),
    ]);
  });

  it('says nothing of settings that a broker does not know', () => {
    const spec = topicTable({
      prefix: 'wine',
      lists: [ORDERS],
      partitions: 6,
      replication: 1,
    })[0]!;
    const topic = { partitions: 6, replication: 1, settings: new Map<string, string>() };
    expect(topicFindings(spec, topic, new Map(), 1)).toEqual([]);
  });
});

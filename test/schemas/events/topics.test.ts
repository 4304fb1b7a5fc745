import { describe, expect, it } from 'vitest';
import { topicNames, topicTable, valueSubject } from '../../../src/schemas/events/topics.ts';
import { DESK } from '../../support/desk.ts';
import { ORDERS } from '../../support/orders.ts';

const lists = [ORDERS, { name: 'wine-clubs' }];

describe('topicTable', () => {
  it('has every topic with its settings', () => {
    const table = topicTable({ prefix: 'wine', lists, partitions: 6, replication: 1 });
    const rows = table.map(({ topic, numPartitions, configEntries }) => [
      topic,
      numPartitions,
      configEntries.map(({ name, value }) => `${name}=${value}`).join(' '),
    ]);

    expect(rows).toEqual([
      [
        'wine.orders',
        6,
        'cleanup.policy=compact min.compaction.lag.ms=2592000000 compression.type=producer',
      ],
      [
        'wine.wine-clubs',
        6,
        'cleanup.policy=compact min.compaction.lag.ms=2592000000 compression.type=producer',
      ],
      [
        'wine.order-status-changes',
        6,
        'cleanup.policy=delete retention.ms=-1 retention.bytes=-1 compression.type=producer',
      ],
      ['wine.dead-letters', 1, 'cleanup.policy=delete compression.type=producer'],
      ['wine.cursors', 1, 'cleanup.policy=compact segment.ms=600000 compression.type=producer'],
      ['wine.signals', 1, 'cleanup.policy=delete retention.ms=604800000 compression.type=producer'],
      [
        'wine.certificates',
        1,
        'cleanup.policy=delete retention.ms=2592000000 compression.type=producer',
      ],
      [
        'wine.ledger',
        1,
        'cleanup.policy=compact segment.ms=600000 message.timestamp.type=LogAppendTime compression.type=producer',
      ],
    ]);
  });

  it('asks for two brokers a commit where there are three copies', () => {
    const least = (replication: number) =>
      topicTable({ prefix: 'wine', lists, partitions: 1, replication }).map(
        ({ replicationFactor, configEntries }) => [
          replicationFactor,
          configEntries.find(({ name }) => name === 'min.insync.replicas')?.value,
        ],
      );

    expect(new Set(least(3).map(String))).toEqual(new Set(['3,2']));
    expect(new Set(least(2).map(String))).toEqual(new Set(['2,']));
  });

  it('has no status changes without orders', () => {
    const table = topicTable({
      prefix: 'w',
      lists: [{ name: 'products' }],
      partitions: 1,
      replication: 1,
    });

    expect(table.map(({ topic }) => topic)).not.toContain('w.order-status-changes');
  });

  it('has the status changes of each list that has statuses, with the partitions of the list', () => {
    const table = topicTable({ prefix: 'd', lists: DESK.lists, partitions: 4, replication: 1 });
    const ofLists = table.filter(({ resource }) => resource !== undefined);

    expect(
      ofLists.map(({ topic, resource, cleanupPolicy, copartitionedWith, numPartitions }) =>
        [topic, resource, cleanupPolicy, copartitionedWith ?? '-', numPartitions].join(' '),
      ),
    ).toEqual([
      'd.tickets tickets compact - 4',
      'd.big-machines big-machines compact - 4',
      'd.people people compact - 4',
      'd.tickets-status-changes tickets delete d.tickets 4',
      'd.machine-states big-machines delete d.big-machines 4',
    ]);
  });

  it('fixes the partitions of the cursors, the signals, the certificates and the ledgers', () => {
    const table = topicTable({ prefix: 'wine', lists, partitions: 6, replication: 1 });
    const fixed = table.filter(({ fixedPartitions }) => fixedPartitions);

    expect(fixed.map(({ topic }) => topic)).toEqual([
      topicNames('wine').cursors,
      topicNames('wine').signals,
      topicNames('wine').certificates,
      topicNames('wine').ledger,
    ]);
  });
});

it('names the subject after the topic', () => {
  expect(valueSubject('wine.orders')).toBe('wine.orders-value');
});

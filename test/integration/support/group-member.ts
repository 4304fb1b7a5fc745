import { Kafka, logLevel } from 'kafkajs';
import { Subject, Subscription } from 'rxjs';
import { inject, onTestFinished } from 'vitest';
import type { Handled, Handler } from '../../../src/consumers/handling.ts';
import { subscribeGroup } from '../../../src/consumers/subscribe-group.ts';
import type { SubscribeGroupOptions } from '../../../src/consumers/subscribe-group.ts';
import type { OrderStatusChange } from '../../../src/description/wine/order-status.ts';
import { topicsUnder } from '../../../src/consumers/wine-topics.ts';
import { withAdmin } from '../../support/with-admin.ts';
import type { Clients } from './written-topic.ts';

/** A member of a group of `<prefix>.order-status-changes`, with a client of its own. */
export interface Member<R> {
  /** What it has emitted. */
  readonly handled: readonly Handled<OrderStatusChange, R>[];
  /** The partitions that it was given, each time. */
  readonly assigned: readonly (readonly number[])[];
  /** Resolves when it has ended by itself; rejects with what it ended with. */
  readonly ended: Promise<void>;
  /** By `stop$`. */
  stop(): Promise<void>;
  unsubscribe(): void;
}

export function member<R>(
  { registry }: Clients,
  prefix: string,
  handle: Handler<OrderStatusChange, R>,
  options: Partial<SubscribeGroupOptions<OrderStatusChange>> = {},
): Member<R> {
  const stop$ = new Subject<void>();
  const handled: Handled<OrderStatusChange, R>[] = [];
  const assigned: (readonly number[])[] = [];
  const handled$ = subscribeGroup(
    {
      kafka: new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }),
      registry,
      topic: topicsUnder(prefix).orderStatusChanges,
      groupId: `${prefix}-group`,
      sessionTimeoutMs: 6_000,
      onRebalance: (partitions) => assigned.push(partitions),
      stop$,
      ...options,
    },
    handle,
  );
  const subscription = new Subscription();
  const ended = new Promise<void>((resolve, reject) => {
    subscription.add(resolve); // unsubscribed
    subscription.add(
      handled$.subscribe({ next: (one) => handled.push(one), complete: resolve, error: reject }),
    );
  });
  ended.catch(() => undefined); // for who awaits it
  onTestFinished(() => {
    stop$.next();
    return ended.catch(() => undefined);
  });
  return {
    handled,
    assigned,
    ended,
    stop: () => {
      stop$.next();
      return ended;
    },
    unsubscribe: () => subscription.unsubscribe(),
  };
}

/** How far a group has come, by partition. */
export function committed({ kafka }: Clients, prefix: string): Promise<Map<number, number>> {
  return withAdmin(kafka, async (admin) => {
    const topic = `${prefix}.order-status-changes`;
    const [offsets] = await admin.fetchOffsets({ groupId: `${prefix}-group`, topics: [topic] });
    return new Map(offsets!.partitions.map(({ partition, offset }) => [partition, Number(offset)]));
  });
}

/** Where the topic ends, by partition. */
export function ends({ kafka }: Clients, prefix: string): Promise<Map<number, number>> {
  return withAdmin(kafka, async (admin) => {
    const found = await admin.fetchTopicOffsets(`${prefix}.order-status-changes`);
    return new Map(found.map(({ partition, high }) => [partition, Number(high)]));
  });
}

/** How many members a group has. */
export function membersOf({ kafka }: Clients, prefix: string): Promise<number> {
  return withAdmin(kafka, async (admin) => {
    const { groups } = await admin.describeGroups([`${prefix}-group`]);
    return groups[0]!.members.length;
  });
}

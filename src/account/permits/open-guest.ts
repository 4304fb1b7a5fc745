import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import type { Config } from '../../config/config.ts';
import { steadyScheduler } from '../../core/clock.ts';
import { withinFinalTimeout } from '../ledger/ledger.ts';
import { guestDeclarations } from './guest-declarations.ts';
import { GuestPermits } from './guest-permits.ts';
import { permitRequests, PermitSource } from './permit-source.ts';
import type { PermitSourceOptions } from './permit-source.ts';
import { topicNames } from '../../schemas/events/topics.ts';
import { guestLog } from '../../sinks/ledger/guest-log.ts';
import { kafkaSignals } from '../../sinks/signals/kafka-signals.ts';

export interface GuestOptions extends Pick<
  PermitSourceOptions,
  'patienceMs' | 'kafkaPatienceMs' | 'onUndeclared'
> {
  readonly kafka: Kafka;
  readonly config: Pick<Config, 'account' | 'topics'>;
  /** Number of permits to acquire at a time, by the quota's name. Default for other quotas: 1. */
  readonly batchSizes: Readonly<Record<string, number>>;
}

/** A command, such as `check`, that sends requests to the API beside the service. It must be closed after its last request. */
export type Guest = ReturnType<typeof openGuest>;

/**
 * Opens a guest: a process that uses an account's quota beside the service. Its requests need permits, which it gets from the service or,
 * if no service runs, declares itself.
 */
export function openGuest(options: GuestOptions) {
  const { kafka, config, batchSizes } = options;
  const scheduler = steadyScheduler;
  const { account } = config;
  const names = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  const instance = randomUUID();
  const topic = kafkaSignals({ kafka }, names.signals);
  const log = guestLog({ kafka, topic: names.ledger, account, instance, scheduler });
  const declarations = guestDeclarations({ log, instance, scheduler });
  const requestPermits = permitRequests({ topic, account, instance, scheduler });
  const source = new PermitSource({ ...options, scheduler, requestPermits, declarations, account });
  const permits = new GuestPermits({
    batchSizes,
    acquireBatch: (demands) => source.acquire(demands),
    scheduler,
  });
  return {
    permits,
    close: async () => {
      permits.close();
      // Without a final declaration, the permits that the guest has not used count against the quota until they expire.
      await withinFinalTimeout(() => declarations.declareFinal(permits.demands()), scheduler);
      log.close();
      await topic.close();
    },
  };
}

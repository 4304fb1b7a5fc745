import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import { defer, lastValueFrom, race, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Config } from '../../config/config.ts';
import { guestDeclarations } from './guest-declarations.ts';
import { GuestPermits } from './guest-permits.ts';
import { permitRequests } from './permit-requests.ts';
import { PermitSource } from './permit-source.ts';
import { topicNames } from '../../schemas/events/topics.ts';
import { guestLog } from '../../sinks/ledger/guest-log.ts';
import { kafkaSignals } from '../../sinks/signals/kafka-signals.ts';

export interface GuestOptions {
  readonly kafka: Kafka;
  readonly config: Pick<Config, 'account' | 'topics'>;
  /** Number of permits to acquire at a time, by the quota's name. Default for other quotas: 1. */
  readonly batchSizes: Readonly<Record<string, number>>;
  /** How long to retry to acquire permits while other processes use up the quota, in ms. After that, acquiring fails with `NO_PERMITS`. */
  readonly patienceMs: number;
  /**
   * How long to retry while Kafka is unreachable, in ms, if it was never reached. After that, requests are sent without being declared. If
   * Kafka refuses access, they are sent undeclared without a retry.
   */
  readonly kafkaPatienceMs: number;
  readonly scheduler: SchedulerLike;
  /** Called once, with the error, if requests are sent without being declared because Kafka is unreachable or refuses access. */
  readonly onUndeclared: (error: unknown) => void;
}

/** A command, such as `check`, that sends requests to the API beside the service. It must be closed after its last request. */
export interface Guest {
  readonly permits: GuestPermits;
  readonly close: () => Promise<void>;
}

/**
 * How long {@link Guest.close} waits for the final declaration, in ms. Without a final declaration, the permits that the guest has not used
 * count against the quota until they expire.
 */
const FINAL_DECLARATION_TIMEOUT_MS = 3_000;

/**
 * Opens a guest: a process that uses an account's quota beside the service. Its requests need permits, which it gets from the service or,
 * if no service runs, declares itself.
 */
export function openGuest(options: GuestOptions): Guest {
  const { kafka, config, batchSizes, scheduler } = options;
  const { account } = config;
  const names = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  const instance = randomUUID();
  const topic = kafkaSignals({ kafka }, names.signals);
  const log = guestLog({ kafka, topic: names.ledger, account, instance, scheduler });
  const declarations = guestDeclarations({ log, instance, scheduler });
  const requestPermits = permitRequests({ topic, account, instance, scheduler });
  const source = new PermitSource({ ...options, requestPermits, declarations, account });
  const permits = new GuestPermits({
    batchSizes,
    acquireBatch: (demands) => source.acquire(demands),
    scheduler,
  });
  return {
    permits,
    close: async () => {
      permits.close();
      const settled$ = defer(() => declarations.declareFinal(permits.demands()));
      const enough$ = race(settled$, timer(FINAL_DECLARATION_TIMEOUT_MS, scheduler));
      await lastValueFrom(enough$, { defaultValue: undefined }).catch(() => undefined);
      log.close();
      await topic.close();
    },
  };
}

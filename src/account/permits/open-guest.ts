import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import { defer, lastValueFrom, race, timer } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { Config } from '../../config/config.ts';
import { guestDeclarations } from './guest-declarations.ts';
import { guestPermits } from './guest-permits.ts';
import type { GuestPermits } from './guest-permits.ts';
import { permitRequests } from './permit-requests.ts';
import { permitSource } from './permit-source.ts';
import { topicNames } from '../../schemas/events/topics.ts';
import { guestLog } from '../../sinks/ledger/guest-log.ts';
import { kafkaSignals } from '../../sinks/signals/kafka-signals.ts';

export interface GuestOptions {
  readonly kafka: Kafka;
  readonly config: Pick<Config, 'account' | 'topics'>;
  readonly batches: Readonly<Record<string, number>>;
  /** How long permits are waited for that others have used up, ms. */
  readonly patienceMs: number;
  /** How long Kafka is looked for before the first requests go on without it, ms. */
  readonly kafkaPatienceMs: number;
  readonly scheduler: SchedulerLike;
  readonly onUncounted: (error: unknown) => void;
}

/** The permits of a command; closed when it asks no more. */
export interface Guest extends Omit<GuestPermits, 'close'> {
  readonly close: () => Promise<void>;
}

/** How long an end waits for Kafka, ms: what is not said then counts for longer. */
const SETTLE_WITHIN_MS = 3_000;

/** A guest of an account: asks the API beside whoever runs it, with permits of theirs or its own declarations. */
export function openGuest(options: GuestOptions): Guest {
  const { kafka, config, batches, scheduler } = options;
  const { account } = config;
  const names = topicNames(config.topics.prefix, config.topics.sharedPrefix);
  const instance = randomUUID();
  const topic = kafkaSignals({ kafka }, names.signals);
  const log = guestLog({ kafka, topic: names.ledger, account, instance, scheduler });
  const declarations = guestDeclarations({ log, instance, scheduler });
  const ask = permitRequests({ topic, account, instance, scheduler });
  const get = permitSource({ ...options, ask, declarations, account });
  const permits = guestPermits({ batches, get, scheduler });
  return {
    ...permits,
    close: async () => {
      permits.close();
      const settled$ = defer(() => declarations.settle(permits.shares()));
      const enough$ = race(settled$, timer(SETTLE_WITHIN_MS, scheduler));
      await lastValueFrom(enough$, { defaultValue: undefined }).catch(() => undefined);
      log.close();
      await topic.close();
    },
  };
}

import type { Observable, SchedulerLike } from 'rxjs';
import type { LedgerSideMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import type { Hooks } from '../observe/hooks.ts';
import { serveAccount } from '../pipeline/serve-account.ts';
import { warmAccount } from '../pipeline/warm-account.ts';
import type { KafkaClients } from '../sinks/open-kafka.ts';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { BodyPool } from '../streams/http/body.ts';
import { openingQueue } from './opening-queue.ts';

/** Operations of an instance on an account: restoring its images, and serving it. */
export interface AccountWork {
  /** Restores the account's images into the local store while another instance serves the account. */
  readonly warm: (config: AccountConfig, signal: AbortSignal) => Promise<void>;
  /** Claims the account and serves it until `stop$` emits; `stop$` must replay its first value. */
  readonly serve: (serving: ServeOptions) => Promise<void>;
}

export interface ServeOptions {
  readonly config: AccountConfig;
  readonly stop$: Observable<unknown>;
  /** Each value triggers an immediate poll of the account's lists. */
  readonly pollNow$: Observable<unknown>;
  readonly hooks: Hooks;
  /** Messages to commit in the same transactions as the account's claim and its release. */
  readonly sideMessages: LedgerSideMessages;
}

/** Objects that all accounts of an instance share. */
export interface AccountWorkOptions {
  /** Unique id of this process. */
  readonly instance: string;
  readonly clients: KafkaClients;
  readonly signals: SignalTopic;
  readonly scheduler: SchedulerLike;
}

export function accountWork(parts: AccountWorkOptions): AccountWork {
  const { instance, clients, scheduler } = parts;
  const opening = openingQueue(scheduler);
  const bodies = new BodyPool();
  return {
    warm: (config, signal) => warmAccount({ config, clients, instance, signal }),
    serve: (serving) => serveAccount({ ...parts, ...serving, bodies, opening }),
  };
}

import type { Observable, SchedulerLike } from 'rxjs';
import type { LedgerMessages } from '../account/ledger/ledger.ts';
import type { AccountConfig } from '../config/accounts.ts';
import type { Hooks } from '../observe/hooks.ts';
import { serveAccount } from '../pipeline/serve-account.ts';
import { warmAccount } from '../pipeline/warm-account.ts';
import type { Links } from '../sinks/client/open-kafka.ts';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { BodyPool } from '../streams/http/body.ts';
import { openings } from './openings.ts';

/** What an instance does for an account. */
export interface AccountWork {
  /** Reads its images, while another instance serves it. */
  readonly warm: (config: AccountConfig, signal: AbortSignal) => Promise<void>;
  /** Takes it, and serves it until `stop$`, which must replay its first value. */
  readonly serve: (serving: Serving) => Promise<void>;
}

export interface Serving {
  readonly config: AccountConfig;
  readonly stop$: Observable<unknown>;
  /** Each of its values has its lists polled at once. */
  readonly pollNow$: Observable<unknown>;
  readonly hooks: Hooks;
  /** What is written when it is claimed, and when it is released. */
  readonly beside: LedgerMessages;
}

/** What all accounts of an instance share. */
export interface SharedParts {
  /** Names this process. */
  readonly instance: string;
  readonly links: Links;
  readonly signals: SignalTopic;
  readonly scheduler: SchedulerLike;
}

export function accountWork(parts: SharedParts): AccountWork {
  const { instance, links, scheduler } = parts;
  const opening = openings(scheduler);
  const bodies = new BodyPool();
  return {
    warm: (config, signal) => warmAccount({ config, links, instance, signal }),
    serve: (serving) => serveAccount({ ...parts, ...serving, bodies, opening }),
  };
}

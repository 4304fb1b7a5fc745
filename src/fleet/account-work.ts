import type { AccountConfig } from '../config/accounts.ts';
import { serveAccount } from '../pipeline/serve-account.ts';
import type { ServeAccountOptions } from '../pipeline/serve-account.ts';
import { warmAccount } from '../pipeline/warm-account.ts';
import { BodyPool } from '../streams/http/body.ts';
import { openingQueue } from './opening-queue.ts';

export interface AccountWork {
  /** Restores the account's images into the local store while another instance serves the account. */
  readonly warm: (config: AccountConfig, signal: AbortSignal) => Promise<void>;
  /** Claims the account and serves it until `stop$` emits; `stop$` must replay its first value. */
  readonly serve: (serving: ServeOptions) => Promise<void>;
}

export interface ServeOptions extends Required<
  Pick<ServeAccountOptions, 'stop$' | 'pollNow$' | 'hooks' | 'sideMessages'>
> {
  readonly config: AccountConfig;
}

export function accountWork(
  parts: Pick<ServeAccountOptions, 'instance' | 'clients' | 'signals' | 'scheduler'>,
): AccountWork {
  const { instance, clients, scheduler } = parts;
  const opening = openingQueue(scheduler);
  const bodies = new BodyPool();
  return {
    warm: (config, signal) => warmAccount({ config, clients, instance, signal }),
    serve: (serving) => serveAccount({ ...parts, ...serving, bodies, opening }),
  };
}

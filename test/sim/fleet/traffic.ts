import type { Observable } from 'rxjs';
import type { Ledger } from '../../../src/account/ledger/ledger.ts';
import type { Quotas } from '../../../src/account/quotas.ts';
import type { ServeOptions } from '../../../src/fleet/account-work.ts';
import type { SimAccount } from './sim-account.ts';
import type { Server } from './serve.ts';

/** What an account asks of its API once it is served. */
export interface Traffic {
  /** Emits when it has a token. */
  readonly loggedIn$: Observable<unknown>;
  /** All else, until it is stopped. */
  readonly work$: Observable<unknown>;
  readonly close: () => Promise<unknown>;
}

/** Whose. */
export interface TrafficOptions {
  readonly server: Server;
  readonly account: SimAccount;
  readonly serving: ServeOptions;
  readonly ledger: Ledger;
  readonly quota: Quotas;
}

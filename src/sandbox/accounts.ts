import { randomUUID } from 'node:crypto';
import { makeAccount } from './account.ts';
import type { Account } from './account.ts';
import type { Settings } from './options.ts';
import { mix } from './random.ts';
import { accountIn } from './tokens.ts';
import { Trade } from './trade.ts';

/** The accounts behind one port, and whose a request is. */
export class Accounts {
  readonly first: Account;
  /** In order of their names. */
  readonly all: readonly Account[];
  /** Answers what names no account, so that it uses up nobody's quota; a sole account does so itself. */
  readonly nobody: Account;
  readonly #byName: ReadonlyMap<string, Account>;
  readonly #byKey: ReadonlyMap<unknown, Account>;

  /** @param clock the server's clock, in epoch ms. */
  constructor(settings: Settings, clock: () => number) {
    const { accounts, seed, apiKey, records } = settings;
    const trade = new Trade(seed, records);
    const digits = String(accounts).length;
    const nameOf = (number: number) => `winery-${String(number).padStart(digits, '0')}`;
    this.first = makeAccount(nameOf(1), settings, trade, clock);
    this.all = Array.from({ length: accounts }, (_, k) => {
      if (k === 0) return this.first;
      const own = { ...settings, seed: mix(seed, k), apiKey: `${apiKey}-${k + 1}` };
      return makeAccount(nameOf(k + 1), own, trade, clock);
    });
    // A seed that no account has, so that no token is good for it: one of another start may come.
    const none = { ...settings, seed: mix(seed, -1), apiKey: randomUUID() };
    this.nobody = accounts === 1 ? this.first : makeAccount('nobody', none, trade, clock);
    this.#byName = new Map(this.all.map((account) => [account.controls.name, account]));
    this.#byKey = new Map(this.all.map((account) => [account.controls.apiKey, account]));
  }

  named(name: string): Account | undefined {
    return this.#byName.get(name);
  }

  /** Whose login this is. */
  ofKey(apiKey: unknown): Account {
    return this.#byKey.get(apiKey) ?? this.nobody;
  }

  /** Whose list is asked for: the token only claims it, the account checks it. */
  ofToken(token: string | undefined): Account {
    return this.#byName.get((token && accountIn(token)) ?? '') ?? this.nobody;
  }
}

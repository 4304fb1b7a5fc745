import { describe, expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import {
  LEASE_RENEWAL_MARGIN_MS,
  LEASE_MS,
  openLedger,
} from '../../../src/account/ledger/ledger.ts';
import type { Ledger } from '../../../src/account/ledger/ledger.ts';
import { parseLedger } from '../../../src/account/ledger/ledger-record.ts';
import type { LedgerDeclaration } from '../../../src/account/ledger/ledger-record.ts';
import type { AccountLog } from '../../../src/sinks/ledger/kafka-ledger.ts';
import { during, tokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import type { TokenBucket } from '../../../src/streams/quota/token-bucket.ts';
import { defer } from 'rxjs';
import { SimTime } from '../../sim/sim-time.ts';

const MINUTE_MS = 60_000;
const COMMIT_MS = 40;
const START = 1_750_000_000_000;

/** An account of one list and its logins, in virtual time. */
class Account {
  readonly time = new SimTime(START);
  readonly declared: { readonly at: number; readonly record: LedgerDeclaration }[] = [];
  readonly ledger: Ledger;
  readonly list: TokenBucket;
  readonly login: TokenBucket;
  /** The machine's clock is so far ahead of the process's, ms. */
  wallAheadMs = 0;
  /** Rejects the next commits. */
  error: unknown;
  /** How long a commit takes. */
  commitMs = COMMIT_MS;
  started: number[] = [];

  constructor() {
    const { scheduler } = this.time;
    this.ledger = openLedger({
      instance: 'a',
      scheduler,
      wallNow: () => scheduler.now() + this.wallAheadMs,
    });
    const bucket = (name: string, capacity: number, isRare: boolean) => {
      const { gate, onStart } = this.ledger.quota(name, capacity, isRare);
      return tokenBucket({ capacity, windowMs: 60_200, scheduler, gate, onStart });
    };
    this.list = bucket('orders', 100, false);
    this.login = bucket('login', 10, true);
  }

  async begin(): Promise<void> {
    const log: AccountLog = {
      claim: () => {
        const at = this.time.now();
        return Promise.resolve({ entries: [], claimedAt: at, guestEntries: [], at });
      },
      append: async (text) => {
        await this.time.sleep(this.commitMs);
        if (this.error !== undefined) throw this.error as Error;
        this.declared.push({ at: this.time.now(), record: parseLedger(text) as LedgerDeclaration });
      },
      guests: () => Promise.resolve({ guestEntries: [], at: this.time.now() }),
      close: () => Promise.resolve(),
    };
    this.ledger.activate(await this.ledger.claim(log));
  }

  /** Asks so often at once, by so long a request each. */
  ask(times: number, bucket = this.list, ms = 100): void {
    for (let k = 0; k < times; k++) {
      const work = defer(() => {
        this.started.push(this.time.now() - START);
        return this.time.sleep(ms);
      });
      during(bucket, work).subscribe();
    }
  }
}

describe('requests of an account', () => {
  it('wait until what lets them begin is committed', async () => {
    const account = new Account();
    await account.begin();
    account.ask(1);
    await account.time.pass(COMMIT_MS - 1);
    expect(account.started).toEqual([]);
    await account.time.pass(2);
    expect(account.started).toEqual([COMMIT_MS]);
    expect(account.declared.map(({ record }) => record.quotas.orders?.more)).toEqual([
      Math.floor((1.01 * 100 * LEASE_MS) / MINUTE_MS) + 2,
    ]);
  });

  it('are declared every ten seconds, and never are more than that', async () => {
    const account = new Account();
    await account.begin();
    account.ask(500);
    await account.time.pass(5 * MINUTE_MS);
    const { declared, started } = account;
    const apart = declared.slice(1).map(({ at }, k) => at - declared[k]!.at);
    expect(Math.min(...apart)).toBeGreaterThanOrEqual(LEASE_MS - LEASE_RENEWAL_MARGIN_MS);
    expect(started.length).toBeGreaterThan(4.9 * 97);
    declared.forEach(({ at, record }, k) => {
      const from = at - COMMIT_MS - START;
      const until = Math.min(from + record.blockMs, (declared[k + 1]?.at ?? Infinity) - START);
      const begun = started.filter((time) => time > from && time <= until).length;
      expect(begun, `${k}`).toBeLessThanOrEqual(record.quotas.orders!.more);
    });
  });

  it('that nobody makes are not declared', async () => {
    const account = new Account();
    await account.begin();
    account.ask(1);
    await account.time.pass(10 * MINUTE_MS);
    expect(account.declared.length).toBeLessThanOrEqual(2);
  });

  it('of which each is rare are declared when they are wanted, one by one', async () => {
    const account = new Account();
    await account.begin();
    account.ask(3, account.login);
    await account.time.pass(1_000);
    const logins = account.declared.map(({ record }) => record.quotas.login?.more);
    expect(logins).toEqual([1, 1, 1]);
    expect(account.started).toHaveLength(3);
  });

  it('that were declared and not made yet are declared again', async () => {
    const account = new Account();
    await account.begin();
    during(
      account.login,
      defer(() => account.time.sleep(1)),
    )
      .subscribe()
      .unsubscribe();
    account.ask(1);
    await account.time.pass(LEASE_MS);
    expect(account.declared.map(({ record }) => record.quotas.login?.more)).toEqual([1, 1]);
  });

  it('are told with the end of their second, and as under way until they are answered', async () => {
    const account = new Account();
    await account.begin();
    account.ask(1, account.list, 30_000);
    account.ask(1, account.list, 2_345);
    await account.time.pass(LEASE_MS);
    const [, second] = account.declared;
    const { used, underWay } = second!.record.quotas.orders!;
    expect(underWay).toBe(1);
    const sentAt = second!.at - COMMIT_MS;
    expect(used).toEqual([[sentAt - (START + 3_000), 1]]); // it ended in the third second
  });

  it('that were given up are told as of a second later: they may still be on their way', async () => {
    const account = new Account();
    await account.begin();
    const work = defer(() => account.time.sleep(30_000));
    const givenUp = during(account.list, work).subscribe();
    await account.time.pass(2_345);
    givenUp.unsubscribe();
    await account.time.pass(LEASE_MS);
    const [, second] = account.declared;
    const { used, underWay } = second!.record.quotas.orders!;
    expect(underWay).toBe(0);
    const sentAt = second!.at - COMMIT_MS;
    expect(used).toEqual([[sentAt - (START + 4_000), 1]]); // in the third second, and one more
  });

  it('end with their block by whichever clock has gone further', async () => {
    const asleep = new Account(); // its monotonic clock stands still meanwhile
    await asleep.begin();
    asleep.ask(1);
    await asleep.time.pass(1_000);
    expect(asleep.ledger.isLeaseValid()).toBe(true);
    asleep.wallAheadMs += LEASE_MS;
    expect(asleep.ledger.isLeaseValid()).toBe(false);

    const setBack = new Account();
    await setBack.begin();
    setBack.ask(1);
    await setBack.time.pass(1_000);
    setBack.wallAheadMs -= 3_600_000;
    await setBack.time.pass(LEASE_MS - 1_000 - LEASE_RENEWAL_MARGIN_MS);
    setBack.error = new CellarstreamError('KAFKA_UNREACHABLE', 'no answer');
    await setBack.time.pass(LEASE_RENEWAL_MARGIN_MS);
    expect(setBack.ledger.isLeaseValid()).toBe(false);
  });

  it('wait while Kafka is away, and go on when it is back', async () => {
    const account = new Account();
    await account.begin();
    account.ask(200);
    await account.time.pass(5_000);
    account.error = new CellarstreamError('KAFKA_UNREACHABLE', 'no answer');
    await account.time.pass(60_000);
    const { length } = account.started;
    expect(account.started.at(-1)).toBeLessThan(5_000 + LEASE_MS);
    account.error = undefined;
    await account.time.pass(10_000);
    expect(account.started.length).toBeGreaterThan(length);
  });

  it('are over when another process has the account', async () => {
    const account = new Account();
    await account.begin();
    let failed: unknown;
    account.ledger.failed$.subscribe({ error: (error: unknown) => (failed = error) });
    account.ask(200);
    await account.time.pass(5_000);
    account.error = new CellarstreamError('FENCED', 'another one has it');
    await account.time.pass(30_000);
    expect(failed).toBe(account.error);
    expect(account.started.at(-1)).toBeLessThan(5_000 + LEASE_MS);
  });

  it('do not begin any more when it has ended in the middle of a declaration', async () => {
    const account = new Account();
    await account.begin();
    account.ask(4);
    await account.time.pass(COMMIT_MS / 2);
    const settled = account.ledger.declareFinal();
    await account.time.pass(1_000);
    await settled;
    expect(account.ledger.isLeaseValid()).toBe(false);
    expect(account.started).toEqual([]);
  });

  it('that were really made are told at the end, and no more', async () => {
    const account = new Account();
    await account.begin();
    account.ask(4);
    await account.time.pass(5_000);
    const settled = account.ledger.declareFinal();
    account.ask(1);
    await account.time.pass(1_000);
    await settled;
    const { record } = account.declared.at(-1)!;
    expect(record.blockMs).toBe(0);
    const { used, underWay, more } = record.quotas.orders!;
    expect([underWay, more]).toEqual([0, 0]);
    expect(used.reduce((sum, [, count]) => sum + count, 0)).toBe(4);
    await account.time.pass(MINUTE_MS);
    expect(account.started).toHaveLength(4);
  });
});

import { NEVER, of, Subject } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Config } from '../../../src/config/config.ts';
import { openLedger } from '../../../src/account/ledger/ledger.ts';
import { parseLedger } from '../../../src/account/ledger/ledger-record.ts';
import type { LedgerDeclaration } from '../../../src/account/ledger/ledger-record.ts';
import { permitGrants } from '../../../src/account/permits/permit-grants.ts';
import { quotas } from '../../../src/account/quotas.ts';
import { parseSignal } from '../../../src/sinks/signals/signals.ts';
import type { PermitsAck, PermitsRequest } from '../../../src/sinks/signals/signals.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
import { startsIn } from '../../sim/sim-store.ts';
import { SimTime } from '../../sim/sim-time.ts';
import { SimLedger } from '../ledger/sim-ledger.ts';

const START = 1_750_000_000_000;
const config = {
  description: WINE,
  account: 'main',
  quota: { perMinute: 100, loginsPerMinute: 10, scope: 'endpoint', firstReadPercent: 73 },
  resources: ['orders'],
  poll: { intervalMs: undefined } as Config['poll'],
} as const;

/** A service that runs, and the answers that it gives. */
async function service({ lasting = true } = {}) {
  const time = new SimTime(START);
  const { scheduler } = time;
  const written: LedgerDeclaration[] = [];
  const log = new SimLedger(time).of({ step: () => time.sleep(5), isCutOff: () => false }, () =>
    time.now(),
  );
  const ledger = openLedger({ instance: 'p0', scheduler, wallNow: () => time.now() });
  const folder = { starts: new Map<string, number[]>(), writer: undefined };
  const startsOf = startsIn(folder);
  const quota = quotas({ config, scheduler, ledger, storedStartsOf: startsOf, instance: 'p0' });
  const append = (text: string) => {
    const record = parseLedger(text);
    if (record && 'quotas' in record) written.push(record);
    return log.append(text);
  };
  const begun = ledger.claim({ ...log, append }).then((inherited) => {
    quota.inherit(inherited);
    ledger.activate(inherited);
  });
  await time.until(done(begun), START + 1_000);
  const requests$ = new Subject<PermitsRequest>();
  const acks: { ack: PermitsAck; at: number }[] = [];
  const granting = requests$
    .pipe(
      permitGrants({
        topic: {
          name: 'wine.signals',
          send: ({ key, value }) => {
            const ack = parseSignal({ key: Buffer.from(key!), value }) as PermitsAck;
            acks.push({ ack, at: time.now() });
            return Promise.resolve();
          },
        },
        ...{ account: 'main', instance: 'p0', quota, scheduler, hooks: {} },
        ledger: lasting
          ? ledger
          : { leaseRemainingMs: () => ledger.leaseRemainingMs(), leaseOfAtLeast: () => NEVER },
        wallNow: () => time.now(),
      }),
    )
    .subscribe();
  const ask = (quotas: Record<string, number>, agoMs = 0) =>
    requests$.next({
      type: 'permits',
      id: `r${acks.length}`,
      account: 'main',
      asker: 'g1',
      quotas,
      requested_at: new Date(time.now() - agoMs).toISOString(),
    });
  return { time, ledger, quota, folder, written, acks, ask, granting };
}

function done(work: Promise<unknown>): () => boolean {
  let isDone = false;
  void work.then(() => (isDone = true));
  return () => isDone;
}

describe('never more than the quota, whoever asks: permits of a service', () => {
  it('are given soon, and last no longer than what it has declared', async () => {
    const { time, ledger, acks, ask, written } = await service();
    ask({ login: 1, orders: 2 });
    await time.pass(1_900);
    expect(acks.map(({ ack }) => ack.granted)).toEqual([{ login: 1, orders: 2 }]);
    const { ack, at } = acks[0]!;
    expect(at - START).toBeLessThan(500);
    const { blockMs } = written.at(-1)!;
    expect(ack.for_ms).toBeGreaterThanOrEqual(5_000);
    expect(ack.for_ms).toBeLessThanOrEqual(blockMs);
    expect(ack.for_ms).toBeLessThanOrEqual(ledger.leaseRemainingMs() + (time.now() - at));
  });

  it('count as requests under way until they may have arrived, and as made for a minute more', async () => {
    const { time, quota, acks, ask } = await service();
    ask({ orders: 5 });
    await time.pass(2_100);
    const until = acks[0]!.at + acks[0]!.ack.for_ms + 1_000;
    const used = () => quota.usage()[0]!.used;
    await time.pass(until - time.now() + 60_000);
    expect(used()).toBe(5);
    await time.pass(1_300); // nobody was answered: the bucket counts them as late as it can
    expect(used()).toBe(0);
  });

  it('that are still good when it stops are in its last word', async () => {
    const { time, ledger, acks, ask, granting, written } = await service();
    ask({ orders: 3 });
    await time.pass(2_100);
    const { ack, at } = acks[0]!;
    granting.unsubscribe();
    await time.until(done(ledger.declareFinal()), Infinity);
    const { used } = written.at(-1)!.quotas.orders!;
    const late = used.filter(([ageMs]) => time.now() - ageMs >= at + ack.for_ms);
    expect(late.reduce((sum, [, count]) => sum + count, 0)).toBeGreaterThanOrEqual(3);
  });

  it('are in its folder with their end, for one that is started there after a kill', async () => {
    const { time, folder, acks, ask } = await service();
    ask({ orders: 3 });
    await time.pass(2_100);
    const { ack, at } = acks[0]!;
    const late = folder.starts.get('orders')!.filter((time) => time >= at + ack.for_ms);
    expect(late).toHaveLength(3);
  });

  it('are as many as are free within two seconds, and never all of the quota', async () => {
    const { time, acks, ask } = await service();
    ask({ orders: 60, login: 9 });
    await time.pass(2_500);
    const { ack, at } = acks[0]!;
    expect(at - START).toBeLessThan(2_200);
    expect(ack.granted.orders).toBeGreaterThan(0);
    expect(ack.granted.orders).toBeLessThanOrEqual(15);
    expect(ack.granted.login).toBeLessThanOrEqual(5);
    expect(ack.message).toBe('the quota has no permits left for other processes');
  });

  it('come before its polls, so that full use keeps nobody waiting', async () => {
    const { time, quota, acks, ask } = await service();
    const { poll } = quota.lanes('orders', false);
    for (let k = 0; k < 300; k++) during(poll, of(undefined)).subscribe();
    await time.pass(30_000);
    ask({ orders: 1 });
    await time.pass(2_100);
    expect(acks[0]!.ack.granted).toEqual({ orders: 1 });
  });

  it('are not given to whom nobody waits for any more, nor of quotas that there are not', async () => {
    const { time, quota, acks, ask } = await service();
    ask({ orders: 1 }, 31_000);
    await time.pass(3_000);
    expect(acks).toEqual([]);
    expect(quota.usage()[0]!.used).toBe(0);
    ask({ vineyards: 1, all: 1 });
    await time.pass(3_000);
    expect(acks[0]!.ack).toMatchObject({
      granted: {},
      message: 'this service has no quota with the name vineyards, all',
    });
  });

  it('are told of in time where its declaration can not be made longer', async () => {
    const { time, acks, ask } = await service({ lasting: false });
    ask({ orders: 1 });
    await time.pass(2_100);
    expect(acks).toHaveLength(1);
  });
});

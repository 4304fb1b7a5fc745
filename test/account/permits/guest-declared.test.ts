import { defer } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import type { Config } from '../../../src/config/config.ts';
import { guestDeclarations } from '../../../src/account/permits/guest-declarations.ts';
import type { QuotaDemand } from '../../../src/account/permits/guest-permits.ts';
import { openLedger } from '../../../src/account/ledger/ledger.ts';
import { quotas } from '../../../src/account/quotas.ts';
import { during } from '../../../src/streams/quota/token-bucket.ts';
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

function world() {
  const time = new SimTime(START);
  const topic = new SimLedger(time);
  const ways = { step: () => time.sleep(5), isCutOff: () => false };
  const at = <T>(work: Promise<T>): Promise<T> => {
    let isOver = false;
    void work.finally(() => (isOver = true)).catch(() => undefined);
    return time.until(() => isOver, Infinity).then(() => work);
  };
  const guest = (instance: string) => {
    const log = topic.guest(instance, ways, () => time.now());
    const { declare, declareFinal } = guestDeclarations({
      log,
      instance,
      scheduler: time.scheduler,
      wallNow: () => time.now(),
    });
    const orders = (wanted: number, used: QuotaDemand['used'] = []) => ({
      orders: { capacity: 100, used, requested: wanted },
    });
    return {
      declare: (wanted: number, used?: QuotaDemand['used']) => at(declare(orders(wanted, used))),
      settle: (used?: QuotaDemand['used']) => at(declareFinal(orders(0, used))),
    };
  };
  const service = (instance: string) => {
    const { scheduler } = time;
    const ledger = openLedger({ instance, scheduler, wallNow: () => time.now() });
    const quota = quotas({ config, scheduler, ledger, instance });
    const { poll } = quota.lanes('orders', false);
    const claim = () => at(ledger.claim(topic.of(ways, () => time.now())));
    const begin = (inherited: Awaited<ReturnType<typeof claim>>) => {
      quota.inherit(inherited);
      ledger.activate(inherited);
    };
    /** The times at which requests begin. */
    const ask = (count: number) => {
      const times: number[] = [];
      for (let k = 0; k < count; k++)
        during(
          poll,
          defer(() => (times.push(time.now()), time.sleep(10))),
        ).subscribe();
      return times;
    };
    const used = () => quota.usage()[0]!.used;
    return { ledger, claim, begin, ask, used };
  };
  return { time, guest, service };
}

describe('never more than the quota, whoever asks: what guests declare', () => {
  it('is theirs where nobody runs the account, and what guests before them have declared is not', async () => {
    const { guest } = world();
    expect((await guest('g1').declare(70))?.counts).toEqual({ orders: 70 });
    expect((await guest('g2').declare(70))?.counts).toEqual({ orders: 30 });
    expect((await guest('g3').declare(70))?.counts).toEqual({ orders: 0 });
  });

  it('is over a minute after it may have arrived, or at once what was not asked', async () => {
    const { time, guest } = world();
    const first = guest('g1');
    await first.declare(100);
    await time.pass(70_500);
    expect((await guest('g2').declare(10))?.counts).toEqual({ orders: 0 });
    await time.pass(1_000);
    const third = guest('g3');
    expect((await third.declare(90))?.counts).toEqual({ orders: 90 });
    await third.settle([[0, 3]]);
    expect((await guest('g4').declare(100))?.counts).toEqual({ orders: 100 - 3 });
  });

  it('is not held up by what was asked more than a minute ago', async () => {
    const { guest } = world();
    const used = [
      [60_300, 95],
      [59_000, 3],
    ] as const;
    expect((await guest('g1').declare(70, used))?.counts).toEqual({ orders: 70 });
    expect((await guest('g2').declare(70))?.counts).toEqual({ orders: 27 });
  });

  it('leaves to others what it did not get', async () => {
    const { guest } = world();
    const first = guest('g1');
    await first.declare(70);
    expect((await guest('g2').declare(70))?.counts).toEqual({ orders: 30 });
    await first.settle();
    expect((await guest('g3').declare(70))?.counts).toEqual({ orders: 70 });
  });

  it('leaves to others what a service did not let it have', async () => {
    const { time, guest, service } = world();
    const { claim, begin, ask } = service('p0');
    begin(await claim());
    ask(1);
    await time.pass(1_000);
    expect(await guest('g1').declare(90)).toBeUndefined();
    await time.pass(25_000);
    expect((await guest('g2').declare(90))?.counts.orders).toBeGreaterThan(50);
  });

  it('counts who came since the same was declared, if nothing of that was asked', async () => {
    const { time, guest } = world();
    const first = guest('g1');
    expect((await first.declare(10))?.counts).toEqual({ orders: 10 });
    await time.pass(75_000); // its machine sleeps
    expect((await guest('g2').declare(100))?.counts).toEqual({ orders: 100 });
    expect((await first.declare(10))?.counts).toEqual({ orders: 0 });
  });

  it('sees a service that came since the same was declared', async () => {
    const { guest, service } = world();
    const first = guest('g1');
    await first.declare(10);
    const { claim, begin, ask } = service('p0');
    begin(await claim());
    ask(1);
    await guest('g2').declare(1);
    expect(await first.declare(10)).toBeUndefined();
  });

  it('is left to the service while its declaration runs, and counts what it asked behind that', async () => {
    const { time, guest, service } = world();
    const { claim, begin, ask } = service('p0');
    begin(await claim());
    const times = ask(5);
    await time.pass(5_000);
    expect(times).toHaveLength(5);
    expect(await guest('g1').declare(10)).toBeUndefined();
    await time.pass(20_000);
    const got = await guest('g2').declare(100);
    expect(got?.counts.orders).toBeGreaterThan(50);
    expect(got?.counts.orders).toBeLessThanOrEqual(95);
  });

  it('counts for a service that takes the ledger over', async () => {
    const { guest, service } = world();
    await guest('g1').declare(40);
    const { claim, begin, used } = service('p0');
    begin(await claim());
    expect(used()).toBe(40);
  });

  it('counts for a service that has not begun yet, before it asks anything', async () => {
    const { time, guest, service } = world();
    const { claim, begin, ask } = service('p0');
    const inherited = await claim();
    expect((await guest('g1').declare(98))?.counts).toEqual({ orders: 98 });
    begin(inherited);
    const times = ask(10);
    await time.pass(60_000);
    expect(times).toHaveLength(2);
  });

  it('counts for a service that has not asked for a while, before it asks again', async () => {
    const { time, guest, service } = world();
    const { claim, begin, ask } = service('p0');
    begin(await claim());
    ask(1);
    await time.pass(90_000);
    expect((await guest('g1').declare(98))?.counts).toEqual({ orders: 98 });
    const times = ask(10);
    await time.pass(60_000);
    expect(times).toHaveLength(2);
  });
});

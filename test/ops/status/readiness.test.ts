import { describe, expect, it } from 'vitest';
import { WINE } from '../../../src/description/wine/wine.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { Lane, Published } from '../../../src/observe/hooks.ts';
import type { NoDates } from '../../../src/streams/paging/list-dates.ts';
import { ReadinessCheck } from '../../../src/ops/status/readiness.ts';
import type { ReadinessOptions } from '../../../src/ops/status/readiness.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const REFUSED = new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka', {
  cause: new Error('connect ECONNREFUSED'),
});
const READY = { ready: true, reasons: [], causes: [] };

/** A service of orders (polled) and inventory (read whole) at a clock that is set by hand. */
function service(options: Partial<ReadinessOptions> = {}) {
  let at = START;
  const model = new ReadinessCheck({
    description: WINE,
    resources: ['orders', 'inventory'],
    now: () => at,
    pollIntervalMs: 0,
    ...options,
  });
  const { onLogin, onReady, onPublished, onRetry, onCommit, onFailed, onEmpty, onDates } =
    model.hooks;
  const page = (resource: string, lane: Lane, completes: boolean): Published => ({
    resource,
    lane,
    changes: [],
    statusChanges: [],
    unchanged: 1,
    known: 1,
    at,
    completes,
  });
  return {
    check: model.check,
    pass: (ms: number) => (at += ms),
    login: () => onLogin!({ lifeMs: 1_800_000, aheadMs: 0 }),
    takenOver: (...resources: string[]) => resources.forEach((resource) => onReady!({ resource })),
    page: (resource: string, lane: Lane) => onPublished!(page(resource, lane, false)),
    complete: (resource: string, lane: Lane) => onPublished!(page(resource, lane, true)),
    commit: (resource: string) => onCommit!({ resource }),
    empty: (resource: string) => onEmpty!({ resource }),
    retry: (what: string, resource?: string, error: unknown = REFUSED) =>
      onRetry!({ what, ...(resource !== undefined && { resource }), error, count: 1, delayMs: 9 }),
    dates: (resource: string, noDates: NoDates | null) => {
      const form = noDates === null ? 'usual' : null;
      const usual = {
        parameter: 'modifiedFromDate',
        stamp: 'updated_at',
        isUsualForm: true,
        offsetMs: 0,
        longestMs: null,
      };
      onDates!({ ...usual, resource, form, noDates });
    },
    fail: (resource: string, error: unknown) => onFailed!({ resource, error, delayMs: 60_000 }),
    failWhole: (error: unknown) => model.accountFailed(error),
  };
}

/** One that is ready. */
function readyService(options: Partial<ReadinessOptions> = {}) {
  const it = service(options);
  it.login();
  it.takenOver('orders', 'inventory');
  it.complete('orders', 'poll');
  it.complete('inventory', 'first-read');
  expect(it.check()).toEqual(READY);
  return it;
}

describe('readiness', () => {
  it('comes when the service is logged in, connected and caught up, and says what is missing', () => {
    const { check, login, takenOver, complete } = service();
    expect(check()).toEqual({ ready: false, reasons: ['not logged in yet'], causes: ['starting'] });
    login();
    expect(check().reasons).toEqual(['orders, inventory: not claimed yet']);
    takenOver('inventory');
    expect(check().reasons).toEqual(['orders: not claimed yet', 'inventory: not caught up yet']);
    takenOver('orders');
    complete('inventory', 'sweep');
    expect(check()).toEqual({
      ready: false,
      reasons: ['orders: not caught up yet'],
      causes: ['starting'],
    });
    complete('orders', 'poll');
    expect(check()).toEqual(READY);
  });

  it('does not wait for the initial snapshot of a list that is polled, but for a whole poll', () => {
    const { check, login, takenOver, page, complete } = service({ resources: ['orders'] });
    login();
    takenOver('orders');
    page('orders', 'first-read');
    page('orders', 'poll');
    complete('orders', 'first-read');
    complete('orders', 'sweep');
    expect(check().ready).toBe(false);
    complete('orders', 'poll');
    expect(check().ready).toBe(true);
  });

  it('waits for one whole reading of a list that can not be polled, or for it to be empty', () => {
    const { check, login, takenOver, page, complete, empty } = service();
    login();
    takenOver('orders', 'inventory');
    complete('orders', 'poll');
    page('inventory', 'first-read');
    expect(check().reasons).toEqual(['inventory: not caught up yet']);
    empty('inventory');
    expect(check()).toEqual(READY);
  });

  it.each(['refused', 'unanswered', 'ignored', 'empty'] as const)(
    'comes and stays with the sweeps of a list whose dates are %s, which has no polls any more',
    (noDates) => {
      const { check, complete, dates, login, pass, takenOver } = service();
      login();
      takenOver('orders', 'inventory');
      complete('inventory', 'first-read');
      complete('orders', 'sweep');
      expect(check().reasons).toEqual(['orders: not caught up yet']);
      dates('orders', noDates);
      for (let minute = 0; minute < 5; minute += 1) {
        complete('orders', 'sweep');
        complete('inventory', 'sweep');
        expect(check()).toEqual(READY);
        pass(50_000);
      }
      dates('orders', null);
      pass(120_000);
      complete('orders', 'sweep');
      complete('inventory', 'sweep');
      expect(check().causes).toEqual(['stale']);
    },
  );

  it('goes while Kafka is waited for: since when, for what, and the error', () => {
    const { check, pass, retry, takenOver, page } = readyService();
    retry('kafka', 'orders');
    pass(1_000);
    retry('kafka', 'inventory');
    pass(5_000);
    retry('kafka', 'orders');
    const waiting = {
      ready: false,
      reasons: [
        'orders, inventory: waiting for Kafka since 2026-01-01T00:00:00Z: no answer from Kafka: connect ECONNREFUSED',
      ],
      causes: ['kafka'],
    };
    expect(check()).toEqual(waiting);
    takenOver('orders', 'inventory'); // connected, but nothing is committed yet
    expect(check()).toEqual(waiting);
    page('inventory', 'sweep');
    page('orders', 'poll');
    expect(check()).toEqual(READY);
  });

  it('goes while the ledger can not be written, and is back with the next page that is dealt with', () => {
    const { check, pass, retry, page } = readyService();
    retry('kafka');
    pass(2_001);
    expect(check()).toEqual({
      ready: false,
      reasons: [
        'waiting for Kafka since 2026-01-01T00:00:00Z: no answer from Kafka: connect ECONNREFUSED',
      ],
      causes: ['kafka'],
    });
    page('orders', 'poll');
    expect(check()).toEqual(READY);
  });

  it('names what a list waits for beside the ledger: that Kafka is away hides no other cause', () => {
    const { check, retry, fail, pass } = readyService();
    retry('kafka');
    retry('registry', 'orders');
    pass(3_000);
    expect(check().causes).toEqual(['kafka', 'registry']);
    retry('kafka', 'orders'); // it is said once
    fail('inventory', new Error('no such column'));
    pass(3_000);
    expect(check().causes).toEqual(['kafka', 'failed']);
    expect(check().reasons.map((line) => line.split(' ')[0])).toEqual(['waiting', 'inventory:']);
  });

  it('stays while a failed try is mended by the next', () => {
    const { check, pass, retry, page } = readyService();
    retry('orders', 'orders');
    pass(2_000);
    expect(check()).toEqual(READY);
    page('orders', 'poll');
    pass(2_000);
    expect(check()).toEqual(READY);
  });

  it('says it once when no list of the API answers, though each error names its own', () => {
    const { login, takenOver, retry, pass, check } = service();
    login();
    takenOver('orders', 'inventory');
    for (const list of ['orders', 'inventory']) {
      const text = `no answer from http://api.example/v1/${list}: ECONNREFUSED`;
      retry(list, list, new CellarstreamError('API_UNREACHABLE', text));
      pass(1_000);
    }
    pass(5_000);
    expect(check().reasons).toEqual([
      'orders, inventory: waiting for the API since 2026-01-01T00:00:00Z: ' +
        'no answer from http://api.example/v1/orders: ECONNREFUSED',
    ]);
  });

  it('goes for one resource while the registry, the API or the folder is waited for', () => {
    const { check, pass, retry } = readyService();
    retry('registry', 'inventory', new CellarstreamError('REGISTRY_UNREACHABLE', 'no registry'));
    retry('orders', 'orders', new CellarstreamError('API_STATUS', '503'));
    pass(2_001);
    expect(check()).toEqual({
      ready: false,
      reasons: [
        'orders: waiting for the API since 2026-01-01T00:00:00Z: 503',
        'inventory: waiting for the schema registry since 2026-01-01T00:00:00Z: no registry',
      ],
      causes: ['api', 'registry'],
    });
    retry('state folder', 'orders', new CellarstreamError('STATE_FOLDER', 'no space left'));
    pass(2_001);
    expect(check().reasons[0]).toBe(
      'orders: waiting for the state folder since 2026-01-01T00:00:02Z: no space left',
    );
  });

  it('says what is waited for before any resource is taken over', () => {
    const { check, pass, retry, login, takenOver } = service();
    retry('login', undefined, new CellarstreamError('API_UNREACHABLE', 'no API'));
    pass(3_000);
    expect(check().reasons).toEqual(['waiting for the login since 2026-01-01T00:00:00Z: no API']);
    login();
    retry('kafka');
    pass(3_000);
    expect(check().reasons).toEqual([
      'waiting for Kafka since 2026-01-01T00:00:03Z: no answer from Kafka: connect ECONNREFUSED',
    ]);
    takenOver('orders');
    expect(check().reasons).toEqual(['orders: not caught up yet', 'inventory: not claimed yet']);
  });

  it('says that Kafka is waited for where nobody logs in before that', () => {
    const { check, pass, retry } = service();
    retry('kafka');
    pass(3_000);
    expect(check().causes).toEqual(['kafka']);
  });

  it('goes when the next login fails, and comes back with it', () => {
    const { check, pass, retry, login } = readyService();
    retry('login');
    pass(3_000);
    expect(check().causes).toEqual(['login']);
    login();
    expect(check()).toEqual(READY);
  });

  it('goes when Kafka says nothing at all to a commit', () => {
    const { check, pass, commit, page } = readyService();
    commit('orders');
    pass(10_000);
    expect(check()).toEqual(READY);
    pass(1);
    expect(check()).toEqual({
      ready: false,
      reasons: ['orders: waiting for Kafka since 2026-01-01T00:00:00Z: no answer'],
      causes: ['kafka'],
    });
    page('orders', 'poll');
    expect(check()).toEqual(READY);
  });

  it('goes at once when a resource has failed, and stays away until a page is dealt with', () => {
    const { check, pass, fail, takenOver, page } = readyService();
    fail('inventory', new CellarstreamError('REGISTRY_REFUSED', 'incompatible'));
    const reasons = ["inventory: can't go on since 2026-01-01T00:00:00Z: incompatible"];
    expect(check()).toEqual({ ready: false, reasons, causes: ['failed'] });
    pass(50_000);
    takenOver('inventory');
    fail('inventory', new CellarstreamError('REGISTRY_REFUSED', 'incompatible'));
    expect(check().reasons).toEqual(reasons);
    page('inventory', 'sweep');
    expect(check()).toEqual(READY);
  });

  it('goes at once when the whole account has failed, until one of its lists is claimed again', () => {
    const { check, pass, failWhole, takenOver } = readyService();
    failWhole(new CellarstreamError('TOPIC_SETTINGS', 'retention'));
    const reasons = ["can't go on since 2026-01-01T00:00:00Z: retention"];
    expect(check()).toEqual({ ready: false, reasons, causes: ['failed'] });
    pass(60_000);
    failWhole(new CellarstreamError('TOPIC_SETTINGS', 'retention'));
    expect(check().reasons).toEqual(reasons);
    takenOver('orders');
    expect(check()).toEqual(READY);
  });

  it('says that the account has failed, not that it starts, where the first login was refused', () => {
    const { check, pass, failWhole, retry } = service();
    retry('login');
    pass(5_000);
    expect(check().causes).toEqual(['login']);
    failWhole(new CellarstreamError('API_KEY_REJECTED', 'wrong key'));
    expect(check()).toEqual({
      ready: false,
      reasons: ["can't go on since 2026-01-01T00:00:05Z: wrong key"],
      causes: ['failed'],
    });
  });

  describe('goes stale', () => {
    const stale = (options: Partial<ReadinessOptions>, afterMs: number) => {
      const { check, pass, complete, page } = readyService({
        resources: ['orders', 'inventory'],
        ...options,
      });
      pass(afterMs);
      complete('inventory', 'sweep');
      page('orders', 'poll'); // a poll that does not come to its end
      expect(check()).toEqual(READY);
      pass(1);
      const since = 'since 2026-01-01T00:00:00Z';
      expect(check()).toEqual({
        ready: false,
        reasons: [`orders: no poll or sweep has ended ${since}`],
        causes: ['stale'],
      });
      complete('orders', 'poll');
      expect(check()).toEqual(READY);
    };

    it('a minute after the last complete poll', () => stale({}, 60_000));
    it('three poll intervals after it, if they are longer', () =>
      stale({ pollIntervalMs: 40_000 }, 120_000));

    it('later where the reading before took as long: three times that', () => {
      const { check, pass, complete } = readyService();
      pass(50_000);
      complete('orders', 'poll');
      complete('inventory', 'sweep');
      pass(150_000);
      expect(check()).toEqual(READY);
      pass(1);
      expect(check().reasons).toEqual([
        'orders, inventory: no poll or sweep has ended since 2026-01-01T00:00:50Z',
      ]);
    });
  });

  it('is patient with a list whose first whole reading took long: the next will too', () => {
    const { login, takenOver, check, pass, complete } = service();
    login();
    takenOver('orders', 'inventory');
    pass(100_000);
    complete('inventory', 'first-read');
    pass(200_000);
    complete('orders', 'poll');
    expect(check()).toEqual(READY);
  });

  it('still waits for Kafka when meanwhile a reading of the same list fails', () => {
    const { commit, retry, check, pass } = readyService();
    commit('orders');
    pass(9_000);
    retry('orders', 'orders');
    pass(1_500);
    expect(check().causes).toEqual(['kafka']);
  });

  it('knows nothing of resources that are not read', () => {
    const { check, complete, fail } = readyService({ resources: ['orders', 'inventory'] });
    fail('products', new Error('of somebody else'));
    complete('products', 'sweep');
    expect(check()).toEqual(READY);
  });
});

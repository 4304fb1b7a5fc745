import { asyncScheduler, concat, EMPTY, of, Subject, throwError } from 'rxjs';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { CellarstreamError } from '../../src/core/errors.ts';
import type { Hooks } from '../../src/observe/hooks.ts';
import { SignalJobs } from '../../src/account/signal-jobs.ts';
import type { ResyncJob } from '../../src/account/signal-jobs.ts';
import type { SignalBatch, SignalTopic } from '../../src/sinks/signals/kafka-signals.ts';
import { parseSignal } from '../../src/sinks/signals/signals.ts';
import type { ResyncAck, ResyncRequest, Signal } from '../../src/sinks/signals/signals.ts';

const AT = '2026-01-01T00:00:00Z';
const unreachable = new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');

const request = (id: string, more: Partial<ResyncRequest> = {}): ResyncRequest => ({
  type: 'resync',
  id,
  account: 'estate',
  resources: ['orders'],
  order_number: null,
  since: null,
  requested_at: AT,
  ...more,
});
const ack = (id: string, more: Partial<ResyncAck> = {}): ResyncAck => ({
  type: 'resync-ack',
  id,
  account: 'estate',
  resource: 'orders',
  status: 'done',
  events: 1,
  message: null,
  at: AT,
  ...more,
});

/** A topic in memory that can be away, and whose newest messages readers who follow may not have yet. */
function memoryTopic() {
  const values: Buffer[] = [];
  const added$ = new Subject<SignalBatch>();
  const sent: ResyncAck[] = [];
  const state = { isAway: false, isSlow: false, reads: 0 };
  const from = (at: bigint): SignalBatch => ({
    partition: 0,
    messages: values.slice(Number(at)).map((value, k) => ({
      key: Buffer.from((JSON.parse(value.toString()) as { id?: string }).id ?? ''),
      value,
      offset: String(at + BigInt(k)),
    })),
    next: BigInt(values.length),
  });
  const write = (...signals: (Signal | { readonly nonsense: true })[]) => {
    const at = BigInt(values.length);
    values.push(...signals.map((signal) => Buffer.from(JSON.stringify(signal))));
    if (!state.isSlow) added$.next(from(at));
  };
  const topic: SignalTopic = {
    name: 'wine.signals',
    ends: () => Promise.resolve(new Map()),
    read: ({ from: positions, follow }) => {
      if (state.isAway) return throwError(() => unreachable);
      state.reads += 1;
      const old$ = state.isSlow && follow ? EMPTY : of(from(positions.get(0) ?? 0n));
      return follow ? concat(old$, added$) : old$;
    },
    send: ({ key, value }) => {
      if (state.isAway) return Promise.reject(unreachable);
      const signal = parseSignal({ key: Buffer.from(key!), value }) as ResyncAck;
      sent.push(signal);
      write(signal);
      return Promise.resolve();
    },
    close: () => Promise.resolve(),
  };
  /** What followers get once more, from an offset on. */
  const repeat = (batch: Partial<SignalBatch> = {}) => added$.next({ ...from(0n), ...batch });
  return { topic, write, sent, state, repeat };
}

function process(
  topic: SignalTopic,
  hooks: Hooks = {},
  resources = ['orders', 'products'],
  isFollowing = true,
) {
  const all = new SignalJobs({
    topic,
    account: 'estate',
    resources,
    scheduler: asyncScheduler,
    hooks,
  });
  if (isFollowing) all.following$.subscribe();
  const orders = all.task('orders');
  /** The ids that a task is given from now on. */
  const given = (task = orders) => {
    const ids: string[] = [];
    const errors: unknown[] = [];
    const taking = task.resyncs$.subscribe({
      next: ({ id }) => ids.push(id),
      error: (error: unknown) => errors.push(error),
    });
    return { ids, errors, stop: () => taking.unsubscribe() };
  };
  return { all, orders, given };
}
const done = { status: 'done', message: null } as const;
const resync = (id: string): ResyncJob => ({
  id,
  resource: 'orders',
  key: null,
  since: null,
});
const settled = () => vi.advanceTimersByTimeAsync(0);

describe('resyncRequests', () => {
  beforeEach(() => void vi.useFakeTimers({ now: Date.parse(AT) }));
  afterEach(() => void vi.useRealTimers());

  it('does not give what comes together with its acknowledgement, while a task listens', async () => {
    const { topic, write } = memoryTopic();
    const { given } = process(topic);
    const { ids } = given();
    await settled();
    write(request('a'), ack('a'), request('b'));
    await settled();
    expect(ids).toEqual(['b']);
  });

  it('does not give what has outlived its acknowledgement', async () => {
    const { topic, write } = memoryTopic();
    write(request('old', { requested_at: '2025-12-24T23:59:59Z' }), request('new'));
    const { ids } = process(topic).given();
    await settled();
    expect(ids).toEqual(['new']);
  });

  it('gives a task what no acknowledgement follows, the oldest first, and what comes', async () => {
    const { topic, write } = memoryTopic();
    write(
      request('a'),
      request('b'),
      request('c'),
      ack('b'),
      request('d', { resources: ['products'] }),
    );
    const { ids } = process(topic).given();
    await settled();
    expect(ids).toEqual(['a', 'c']);
    write(request('e', { resources: ['products', 'orders', 'orders'] }), request('e'));
    expect(ids).toEqual(['a', 'c', 'e']);
  });

  it('tells of what: an order as its key, a time in ms', async () => {
    const { topic, write } = memoryTopic();
    const all: ResyncJob[] = [];
    process(topic).orders.resyncs$.subscribe((each) => all.push(each));
    write(
      request('a', { order_number: '007' }),
      request('b', { since: '2026-01-01T01:00:00+01:00' }),
    );
    await settled();
    expect(all).toEqual([
      { type: 'resync', ...resync('a'), key: '7' },
      { type: 'resync', ...resync('b'), since: Date.parse(AT) },
    ]);
  });

  it('tells of requests for certificates apart, until one is acknowledged', async () => {
    const { topic, write } = memoryTopic();
    const certify = (id: string): Signal => ({
      ...{ type: 'certify', id, account: 'estate', resources: ['orders'], requested_at: AT },
    });
    const { orders } = process(topic);
    const ids: string[] = [];
    orders.certifications$.subscribe(({ id }) => ids.push(id));
    const resyncs: string[] = [];
    orders.resyncs$.subscribe(({ id }) => resyncs.push(id));
    const acknowledged: Signal = {
      ...{ type: 'certify-ack', id: 'b', account: 'estate', resource: 'orders', status: 'done' },
      ...{ number: 1, message: null, at: AT },
    };
    write(certify('a'), certify('b'), acknowledged, request('c'));
    await settled();
    expect([ids, resyncs]).toEqual([['a'], ['c']]);
    const outcome = { status: 'done', number: 7, message: null } as const;
    const { key, value } = orders.certifyAck({ id: 'a', resource: 'orders' }, outcome);
    expect(parseSignal({ key: Buffer.from(key!), value })).toMatchObject({
      ...{ type: 'certify-ack', id: 'a', account: 'estate', resource: 'orders', ...outcome },
    });
  });

  it('gives nothing before the end of the topic is known, however far its follower is', async () => {
    const { topic, write, state } = memoryTopic();
    state.isSlow = true;
    write(request('a'), ack('a'), request('b'));
    const { ids } = process(topic, {}, ['orders'], false).given();
    expect(ids).toEqual([]);
    await settled();
    expect(ids).toEqual(['b']);
  });

  it('reads what was asked before once, for all lists that begin at once', async () => {
    const { topic, write, state } = memoryTopic();
    write(request('a'));
    const { all, given } = process(topic, {}, ['orders', 'products', 'customers'], false);
    const [orders] = ['orders', 'products', 'customers'].map((each) => given(all.task(each)));
    await settled();
    expect(orders!.ids).toEqual(['a']);
    expect(state.reads).toBe(1);
  });

  it('takes no notice of what comes a second time', async () => {
    const { topic, write, repeat } = memoryTopic();
    write(request('a'), ack('a'));
    const { ids } = process(topic).given();
    await settled();
    repeat({ messages: [], next: 0n });
    repeat();
    expect(ids).toEqual([]);
    write(request('b'));
    repeat();
    expect(ids).toEqual(['b']);
  });

  it('takes what is new out of what is not', async () => {
    const { topic, write, state, repeat } = memoryTopic();
    write(request('a'), ack('a'));
    const { ids } = process(topic).given();
    await settled();
    state.isSlow = true;
    write(request('b'));
    repeat();
    expect(ids).toEqual(['b']);
  });

  it('gives what was not acknowledged again, and looks first when that is in doubt', async () => {
    const { topic, write, state } = memoryTopic();
    write(request('a'), request('b'), request('c'));
    const { orders, given } = process(topic);
    const first = given();
    await settled();
    orders.resyncAck(resync('a'), done, 1);
    orders.ackCommitted(resync('a'));
    first.stop();
    const { reads } = state;
    const second = given();
    await settled();
    expect(second.ids).toEqual(['b', 'c']);
    expect(state.reads).toBe(reads); // what is certain is not looked up

    orders.resyncAck(resync('b'), done, 1);
    second.stop(); // with its commit, of which nobody knows
    state.isSlow = true;
    write(ack('b'));
    const third = given();
    await settled();
    expect(third.ids).toEqual(['c']);
    orders.resyncAck(resync('c'), done, 1);
    third.stop();
    const fourth = given(); // this commit has failed
    await settled();
    expect(fourth.ids).toEqual(['c']);
  });

  it("passes over others' requests, what is none, and what is too many", async () => {
    const { topic, write } = memoryTopic();
    const reasons: string[] = [];
    const onSignalIgnored: Hooks['onSignalIgnored'] = ({ offset, reason }) =>
      reasons.push(`${offset} ${reason}`);
    const { ids } = process(topic, { onSignalIgnored }).given();
    await settled();
    write(request('x', { account: 'other' }), { nonsense: true }, request('a'));
    write(ack('a', { account: 'other' }));
    expect(reasons).toEqual(['1 no signal: its type is not known']);
    write(...Array.from({ length: 1_000 }, (_, n) => request(`n${n}`)));
    expect(ids).toHaveLength(1_000);
    expect(reasons[1]).toMatch(
      / 1000 requests to resync or certify are pending already: send this one again later$/,
    );
    write(ack('a'), request('b'));
    expect(ids.at(-1)).toBe('b');
  });

  it('refuses what this process does not read, once', async () => {
    const { topic, write, sent } = memoryTopic();
    write(
      request('a', { resources: ['customers'] }),
      ack('a', { resource: 'customers', status: 'refused' }),
    );
    write(request('b', { resources: ['customers', 'orders'] }));
    const told: string[] = [];
    process(topic, {
      onResync: ({ id, resource, status }) => told.push(`${id} ${resource} ${status}`),
    });
    await settled();
    write(request('c', { resources: ['customers'] }));
    await settled();
    const message = 'this service does not read customers: it reads orders, products';
    expect(sent).toMatchObject(
      ['b', 'c'].map((id) => ({
        id,
        resource: 'customers',
        status: 'refused',
        events: 0,
        message,
      })),
    );
    expect(told).toEqual(['b customers refused', 'c customers refused']);
  });

  it('goes on after every outage, and lets no error out', async () => {
    const { topic, write, state } = memoryTopic();
    const pauses: number[] = [];
    const onSignalsFailed: Hooks['onSignalsFailed'] = ({ delayMs }) => pauses.push(delayMs);
    state.isAway = true;
    const { given } = process(topic, { onSignalsFailed });
    const { ids, errors } = given();
    write(request('a'), request('b', { resources: ['customers'] }));
    await vi.advanceTimersByTimeAsync(60_000);
    expect([ids, errors]).toEqual([[], []]);
    expect(pauses.length).toBeGreaterThan(30);
    expect(Math.max(...pauses)).toBe(5_000);
    state.isAway = false;
    await vi.advanceTimersByTimeAsync(5_000);
    expect(ids).toEqual(['a']);
  });

  it('waits longer where no later try is known to help, and still goes on', async () => {
    const refused = new CellarstreamError('KAFKA_REFUSED', 'Kafka refuses');
    const { topic, write } = memoryTopic();
    let tries = 0;
    const read: SignalTopic['read'] = (options) =>
      ++tries > 3 ? topic.read(options) : throwError(() => refused);
    const { given } = process({ ...topic, read });
    const { ids } = given();
    write(request('a'));
    await vi.advanceTimersByTimeAsync(59_000);
    expect(ids).toEqual([]);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(ids).toEqual(['a']);
  });
});

import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { commits, setTransactionTimeout } from '../support/proxy/kafka-frames.ts';
import type { ApiName, KafkaRequest } from '../support/proxy/kafka-frames.ts';
import {
  goDark,
  holdAnswer,
  holdRequest,
  loseAnswer,
  loseRequest,
  pass,
} from '../support/proxy/kafka-proxy.ts';
import type { Aim, Fault, KafkaProxy } from '../support/proxy/kafka-proxy.ts';
import { cursorWriters } from './support/cursors.ts';
import { folder, proxied } from './support/proxied-service.ts';
import type { Cli } from './support/cli.ts';
import { scaled } from '../support/scale.ts';
import { firstReadDone } from './support/service.ts';

/** Instead of kafkajs' 30 s, where a test waits for it; long enough for a machine that is busy. */
const REQUEST_TIMEOUT_MS = 3_000;
const INVALID_PRODUCER_EPOCH = 47;
/** What else a broker says of a commit that is too late: while it aborts, and when it has. */
const TOO_LATE = [48, 51];
/** They run beside each other, and wait for each other on a small machine. */
const TIMEOUT_MS = 240_000;

/** The producer of a task, and not that of the ledger, nor the one without a name that kafkajs opens beside it. */
const ofTask = ({ id }: KafkaRequest) => id !== null && !id.includes('.ledger/');
/**
 * A task's commit. The ledger's are left out, as what it holds back goes on when a task begins again; and so are
 * aborts: a producer that is opened again aborts first, as often as the broker says that it is busy.
 */
const COMMIT: Aim = { api: 'EndTxn', where: (request) => ofTask(request) && commits(request) };
/** Resolves when a task has been taken over, which puts an end to whatever its producer before did. */
const takenOver = (proxy: KafkaProxy) =>
  proxy.strike({ api: 'InitProducerId', where: ofTask }, pass).done;

interface Kind {
  readonly what: string;
  readonly fault: (proxy: KafkaProxy) => Fault;
  /** What the broker says to the commit; undefined when it never gets it. */
  readonly says: number | undefined;
  /** Whether the client finds out by waiting. */
  readonly isSlow: boolean;
  /** Whether it is left to the long run, as another is much like it. */
  readonly isLong?: boolean;
}

const ALL_KINDS: readonly Kind[] = [
  { what: 'the answer is lost', fault: () => loseAnswer, says: 0, isSlow: false },
  {
    what: 'the request is lost',
    fault: () => loseRequest,
    says: undefined,
    isSlow: false,
    isLong: true,
  },
  {
    what: 'the answer comes when it was given up',
    fault: (proxy) => holdAnswer(() => takenOver(proxy)),
    says: 0,
    isSlow: true,
    isLong: true,
  },
  {
    what: 'the request arrives when it was given up',
    fault: (proxy) => holdRequest(() => takenOver(proxy)),
    says: INVALID_PRODUCER_EPOCH,
    isSlow: true,
  },
  { what: 'all connections go dead', fault: () => goDark, says: 0, isSlow: true },
];
const KINDS = scaled(
  ALL_KINDS.filter(({ isLong }) => !isLong),
  ALL_KINDS,
);

describe.concurrent('run, when the outcome of a commit is unknown', { timeout: TIMEOUT_MS }, () => {
  it.for(KINDS)('publishes each change once though $what', async (kind, context) => {
    const { what, fault, says, isSlow } = kind;
    const test = await proxied(context, `unknown-${KINDS.indexOf(kind)}`);
    const { proxy } = test;
    const strike = (skip = 0) => proxy.strike({ ...COMMIT, skip }, fault(proxy)).done;
    const started = performance.now();
    const claim = strike();
    const service = test.run(isSlow ? { requestTimeoutMs: REQUEST_TIMEOUT_MS } : {});
    const isReading = () =>
      !service.lines().some(({ event, done }) => event === 'first-read' && done === true);
    const answers = [await claim];
    for (let n = 0; n < (isSlow ? 1 : 2); n++) {
      answers.push(await strike(3)); // the claim of the retake, and some pages
      expect(isReading()).toBe(true);
    }
    await firstReadDone(service);
    for (let n = 0; n < (isSlow ? 1 : 4); n++) answers.push(await strike(1));
    const ends = proxy.count('EndTxn');
    const { exit, violations, events, statusChanges } = await test.prove(service);
    console.log(
      `${what}: ${answers.length} times of ${ends} ends of transactions;`,
      `${events} events, ${statusChanges} status changes, ${violations.length} violations, ${((performance.now() - started) / 1000).toFixed(1)} s`,
    );
    expect(violations).toEqual([]);
    expect(exit).toBe(0);
    const refused = (code: number | undefined) =>
      code !== undefined && TOO_LATE.includes(code) ? INVALID_PRODUCER_EPOCH : code;
    expect(answers.map((answer) => refused(answer?.errorCode))).toEqual(answers.map(() => says));
  });

  it('goes on though a broker takes its connections and then says nothing', async (context) => {
    const test = await proxied(context, 'unknown-silence');
    const { proxy } = test;
    const service = test.run({ requestTimeoutMs: REQUEST_TIMEOUT_MS });
    await firstReadDone(service);
    const silences = [0, 1, 2].map(
      () =>
        proxy.strike(
          { api: 'ApiVersions' },
          holdAnswer(() => takenOver(proxy)),
        ).begun,
    );
    await proxy.strike(COMMIT, loseAnswer).done;
    await Promise.race([Promise.all(silences), service.ended]);
    const proof = await test.prove(service);
    expect(proof).toMatchObject({ exit: 0, violations: [] });
  });

  it('asks for the first page at once though the commits of its first claims were lost', async (context) => {
    const { proxy, sandbox, run } = await proxied(context, 'unknown-claim');
    const ledger = proxy.strike(
      { api: 'EndTxn', where: (request) => !ofTask(request) },
      loseAnswer,
    ).done;
    const task = proxy.strike(COMMIT, loseAnswer).done;
    const service = run();
    await Promise.all([ledger, task]);
    const lostAt = performance.now();
    await service.logged(({ event }) => event === 'first-read');
    expect(sandbox.truth.requests('orders').length).toBeGreaterThan(0);
    expect(performance.now() - lostAt).toBeLessThan(45_000); // it would wait for a minute's window
  });

  it('loses nothing when other answers than those to commits are lost', async (context) => {
    const test = await proxied(context, 'unknown-others');
    const { proxy } = test;
    const lose = (api: ApiName) => proxy.strike({ api }, loseAnswer).done;
    const start = [lose('FindCoordinator'), lose('InitProducerId'), lose('Metadata')];
    const service = test.run();
    await Promise.all(start);
    for (let n = 0; n < 3; n++) {
      await Promise.all([lose('AddPartitionsToTxn'), lose('Produce')]);
    }
    await firstReadDone(service);
    for (const api of [
      'ListOffsets',
      'Fetch',
      'InitProducerId',
      'FindCoordinator',
      'AddPartitionsToTxn',
      'Produce',
    ] as const) {
      const other = lose(api);
      await proxy.strike(COMMIT, loseAnswer).done; // it has to begin again, and ask for all of that
      await other;
    }
    const proof = await test.prove(service);
    console.log('other answers are lost: 15 times;', proof);
    expect(proof).toMatchObject({ exit: 0, violations: [] });
  });

  it('goes on when the broker has given up a transaction that took too long', async (context) => {
    const test = await proxied(context, 'unknown-timeout');
    const { proxy, prefix } = test;
    const timeoutMs = 3_000;
    void proxy.strike({ api: 'InitProducerId', where: ofTask }, (exchange) => {
      setTransactionTimeout(exchange.request, timeoutMs);
      return pass(exchange);
    });
    const service = test.run();
    await firstReadDone(service);
    const over = () => transactionOver(`${prefix}.cursors`);
    const commit = proxy.strike(COMMIT, holdRequest(over));
    expect((await commit.done)?.errorCode).toBe(INVALID_PRODUCER_EPOCH);
    const { err } = await service.logged(({ event }) => event === 'retry');
    expect(err).toMatchObject({ code: 'COMMIT_FAILED' }); // of an answer that came, or came too late
    const proof = await test.prove(service);
    expect(proof).toMatchObject({ exit: 0, violations: [] });
  });
});

/** Where a process stands still while another one takes its task. */
interface Standstill {
  readonly before: string;
  readonly aim: Aim;
  readonly of: 'claim' | 'poll';
}
const TO_OPEN: Aim = { api: 'InitProducerId', where: ofTask };
const STANDSTILLS: readonly Standstill[] = [
  { of: 'poll', before: 'it looks at the cursor', aim: { api: 'ListOffsets' } },
  { of: 'claim', before: 'it opens its producer', aim: TO_OPEN },
  ...scaled<readonly Standstill[]>(
    [],
    [{ of: 'poll', before: 'it opens its producer', aim: TO_OPEN }],
  ),
];

describe.concurrent(
  'run, replaced while it comes back from a commit in doubt',
  { timeout: TIMEOUT_MS },
  () => {
    it.for(STANDSTILLS)(
      'ends with FENCED: after a $of, before $before',
      async ({ of, aim }, context) => {
        const test = await proxied(context, `fenced-${of}-${aim.api.toLowerCase()}`);
        const { proxy, prefix } = test;
        const [state, newer] = [folder(context), folder(context)];
        const strike = () => proxy.strike(COMMIT, loseAnswer).done;
        let lost: Promise<unknown>;
        let older: Cli;
        if (of === 'claim') {
          // For a minute the newer one asks for nothing, as others had their turn: all is published.
          await test.prove(test.run({ past: true }));
          lost = strike();
          older = test.run({ stateDir: state });
        } else {
          older = test.run({ stateDir: state });
          await firstReadDone(older);
          // Else the newer one would wait for a minute.
          cpSync(join(state, 'quota'), join(newer, 'quota'), { recursive: true });
          lost = strike();
        }
        await lost;
        let release: () => void = () => undefined;
        const released = new Promise<void>((resolve) => (release = resolve));
        await proxy.strike(
          aim,
          holdRequest(() => released),
        ).begun;

        const other = test.run({ stateDir: newer, past: true });
        await other.logged(({ event }) => event === 'ready');
        release();
        expect(await older.ended).toBe(1);
        expect(older.stderr()).toContain('another instance has claimed this account');
        const proof = await test.prove(other);
        expect(proof).toMatchObject({ exit: 0, violations: [] });

        const writers = await cursorWriters(inject('brokers'), `${prefix}.cursors`);
        const turns = writers.filter((writer, n) => writer !== writers[n - 1]);
        expect(turns).toHaveLength(new Set(turns).size); // who was replaced never wrote again
        expect(turns.length).toBeGreaterThan(1);
      },
    );
  },
);

/** Resolves when a transaction that is open in this topic is over, whoever ends it. */
async function transactionOver(topic: string): Promise<void> {
  const admin = new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING }).admin();
  await admin.connect();
  const end = async () => (await admin.fetchTopicOffsets(topic))[0]?.high;
  const open = await end();
  await vi.waitFor(async () => expect(await end()).not.toBe(open), {
    timeout: 40_000,
    interval: 250,
  });
  await admin.disconnect();
}

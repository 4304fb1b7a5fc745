import { setTimeout as sleep } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';
import type { Transaction } from 'kafkajs';
import { asyncScheduler } from 'rxjs';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { topicTable } from '../../src/schemas/events/topics.ts';
import { compactedTopics } from '../../src/kafka/fetch/kafka-tail.ts';
import { kafkaTransactionalLog } from '../../src/sinks/open-kafka.ts';
import { accountLog } from '../../src/sinks/ledger/kafka-ledger.ts';
import type { AccountLog, AccountLogOptions } from '../../src/sinks/ledger/kafka-ledger.ts';
import { withAdmin } from '../support/with-admin.ts';
import { KafkaProxy, loseAnswer } from '../support/proxy/kafka-proxy.ts';
import { createTopic } from './support/created-topic.ts';
import { kafkajsRead } from './support/kafkajs-read.ts';
import type { StoredRecord } from './support/stored-record.ts';

const [BROKER = ''] = inject('brokers');
const PREFIX = `ledger-${randomUUID()}`;
const TOPIC = `${PREFIX}.ledger`;
const clientOf = (broker: string) => new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING });
const kafka = clientOf(BROKER);
/** Above what brokers' clocks are taken to differ by. */
const AGED_MS = 700;
const idOf = (account: string) => `cellarstream.${PREFIX}.ledger/${account}`;

let made: Promise<unknown> | undefined;
/** As the service makes it. */
async function topicMade(): Promise<void> {
  const table = topicTable({ prefix: PREFIX, lists: [], partitions: 1, replication: 1 });
  const { configEntries } = table.find(({ topic }) => topic === TOPIC)!;
  made ??= createTopic(kafka, { topic: TOPIC, numPartitions: 1, configEntries });
  await made;
}

/** What one process has of it; its entries begin with its name. */
async function logOf(
  name: string,
  account: string,
  client = kafka,
  other: Partial<AccountLogOptions> = {},
): Promise<AccountLog> {
  await topicMade();
  const log = accountLog({
    log: kafkaTransactionalLog(
      { kafka: client },
      { partitions: new Map([[other.topic ?? TOPIC, 1]]) },
    ),
    ledgerTopic: compactedTopics(client)(other.topic ?? TOPIC, 'uncommitted'),
    ...{ topic: TOPIC, account, transactionalId: idOf(account), scheduler: asyncScheduler },
    recreateTopic: () => Promise.reject(new Error('it is there')),
    isOwnEntry: (text) => text.startsWith(name),
    ...other,
  });
  onTestFinished(() => log.close());
  return log;
}

/** A transaction that is left open, with one message of the account. */
async function openTransaction(account: string, text: string): Promise<Transaction> {
  const producer = kafka.producer({
    transactionalId: idOf(account),
    idempotent: true,
    maxInFlightRequests: 1,
  });
  onTestFinished(() => producer.disconnect());
  await producer.connect();
  const transaction = await producer.transaction();
  await transaction.send({ topic: TOPIC, messages: [{ key: account, value: text }] });
  return transaction;
}

/** Undefined where it was committed. */
const failureOf = (append: Promise<void>): Promise<unknown> =>
  append.then(
    () => undefined,
    (error: unknown) => error,
  );
const textsOf = async (log: AccountLog, claim: string) =>
  (await log.claim(claim)).entries.map(({ text }) => text);

describe('the ledger of an account', () => {
  it('is found by the next process, with the age of each entry; the one before is fenced', async () => {
    const first = await logOf('a', 'main');
    expect((await first.claim('a claims')).entries).toEqual([]);
    await first.append('a declares');
    await sleep(AGED_MS);

    const second = await logOf('b', 'main');
    const { entries } = await second.claim('b claims');
    expect(entries.map(({ text }) => text)).toEqual(['a declares']);
    expect(entries[0]!.ageMs).toBeGreaterThan(AGED_MS - 200);
    expect(entries[0]!.ageMs).toBeLessThan(AGED_MS + 5_000);
    expect(await failureOf(first.append('a declares more'))).toMatchObject({
      code: 'COMMIT_FAILED',
    });
    expect(await failureOf(first.append('a declares more'))).toMatchObject({ code: 'FENCED' });
    await second.append('b declares');
  });

  it('keeps what was declared when claims follow, whatever compaction takes', async () => {
    await (await logOf('z', 'compacted')).claim('z claims');
    const first = await logOf('a', 'compacted');
    await first.claim('a claims');
    await first.append('a declares');
    await (await logOf('b', 'compacted')).claim('b claims');
    const isOurs = (key: Buffer | null) => key?.toString().startsWith('compacted') ?? false;
    const texts = (records: readonly StoredRecord[]) =>
      records
        .filter(({ key }) => isOurs(key))
        .map(({ key, value }) => [String(key), String(value)] as const);
    const all = await kafkajsRead(BROKER, TOPIC, (records) => texts(records).length === 4);
    expect(new Set(new Map(texts(all)).values())).toEqual(new Set(['a declares', 'b claims']));
  });

  it('counts what was declared and never committed', async () => {
    await topicMade();
    await openTransaction('aborted', 'a declares, and ends');
    const second = await logOf('b', 'aborted');
    expect(await textsOf(second, 'b claims')).toEqual(['a declares, and ends']);
  });

  it("is not held back by another account's open transaction", async () => {
    const first = await logOf('a', 'behind');
    await first.claim('a claims');
    const other = await openTransaction('other', 'of another one');
    await first.append('a declares');
    const began = performance.now();
    const second = await logOf('b', 'behind');
    expect(await textsOf(second, 'b claims')).toEqual(['a declares']);
    expect(performance.now() - began).toBeLessThan(10_000);
    await other.abort();
  });

  it('goes on in a topic that was made anew, and finds what was declared there alone', async () => {
    const topic = `${TOPIC}-anew`;
    const make = () => createTopic(kafka, { topic, numPartitions: 1 });
    await make();
    const first = await logOf('a', 'anew', kafka, { topic, recreateTopic: make });
    await first.claim('a claims');
    for (const text of ['a declares', 'a declares more', 'and more']) await first.append(text);
    await withAdmin(kafka, (admin) => admin.deleteTopics({ topics: [topic] }));
    await expect
      .poll(() => failureOf(first.append('a is back')), { timeout: 60_000 })
      .toBe(undefined);
    expect(await first.guests()).toMatchObject({ guestEntries: [] });
    const second = await logOf('b', 'anew', kafka, { topic });
    expect(await textsOf(second, 'b claims')).toEqual(['a is back']);
  });

  it('goes on behind a commit whose answer was lost', async () => {
    const proxy = await KafkaProxy.listen(BROKER);
    onTestFinished(() => proxy.close());
    const first = await logOf('a', 'lost', clientOf(proxy.address));
    await first.claim('a claims');
    const lost = proxy.strike(
      { api: 'EndTxn', where: ({ id }) => id === idOf('lost') },
      loseAnswer,
    );
    const failure = await failureOf(first.append('a declares'));
    await lost.done;
    const last = failure === undefined ? 'a declares' : 'a declares again';
    if (failure !== undefined) await first.append(last);

    const second = await logOf('b', 'lost');
    expect(await textsOf(second, 'b claims')).toEqual([last]);
    await second.append('b declares');
  });
});

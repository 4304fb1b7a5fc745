import { createHash } from 'node:crypto';
import { Kafka, logLevel, Partitioners } from 'kafkajs';
import { describe, expect, inject, it, vi } from 'vitest';
import { deleteCompacted } from './support/deleted-records.ts';
import { besideEachOther, PATIENCE_MS, TIMEOUT } from './support/running-test.ts';
import { cliForTest, folderForTest, sandboxForTest, settings } from './support/service.ts';
import { readTopic } from './support/topic-reader.ts';
import type { Read } from './support/topic-reader.ts';

const ORDERS = 300;
const kafka = () => new Kafka({ brokers: inject('brokers'), logLevel: logLevel.NOTHING });
const read = (topic: string) => readTopic(inject('brokers'), inject('registryUrl'), topic);
const POLL = { timeout: PATIENCE_MS, interval: 500 };
besideEachOther();

/** As somebody reads it who has nothing of the service. */
interface Certificate {
  readonly number: number;
  readonly sequence: number;
  readonly total_records: number | null;
  readonly read: number;
  readonly rejected: number;
  readonly undecided: number;
  readonly proof: string;
  readonly records: number;
  readonly partitions: Readonly<
    Record<string, { readonly position: number; readonly records: number; readonly digest: string }>
  >;
}

async function certificatesOf(prefix: string): Promise<Certificate[]> {
  const messages = await read(`${prefix}.certificates`).catch(() => []);
  return messages.map(({ value }) => value as unknown as Certificate);
}

const sequenceOf = ({ value }: Read) => (value!.source as { sequence: number }).sequence;

/** Count and digest of the live keys before a position, as the contract has them. */
function digestOf(events: readonly Read[], partition: number, position: number) {
  const newest = new Map<string, number>();
  for (const event of events) {
    if (event.partition !== partition || event.offset >= BigInt(position)) continue;
    if (event.value?.after) newest.set(event.key!, sequenceOf(event));
    else newest.delete(event.key!);
  }
  let sum = 0n;
  for (const [key, sequence] of newest) {
    const hash = createHash('sha256').update(`${key}\n${sequence}`).digest('hex');
    sum = (sum + BigInt(`0x${hash.slice(0, 16)}`)) % 2n ** 64n;
  }
  return { records: newest.size, digest: sum.toString(16).padStart(16, '0') };
}

/** Holds certificates against what is in the topic. */
function expectTrue(certificates: readonly Certificate[], events: readonly Read[]): void {
  for (const { partitions } of certificates) {
    for (const [partition, { position, ...told }] of Object.entries(partitions)) {
      expect(told).toEqual(digestOf(events, Number(partition), position));
    }
  }
  const numbers = certificates.map(({ number }) => number);
  expect(numbers).toEqual(numbers.map((_, place) => place + 1));
}

const moreThan = (prefix: string, count: number) =>
  vi.waitFor(
    async () => expect((await certificatesOf(prefix)).length).toBeGreaterThan(count),
    POLL,
  );

describe.concurrent('certificates', TIMEOUT, () => {
  it('say what is in the topic, while it changes, through a kill and with the folder lost', async () => {
    const prefix = 'certified';
    const sandbox = await sandboxForTest({ records: { orders: ORDERS }, changesPerSecond: 20 });
    const env = {
      ...settings(sandbox, prefix, folderForTest()),
      SWEEP_INTERVAL_MS: '1000',
      CERTIFICATE_INTERVAL_MS: '100',
    };
    const service = cliForTest(['run'], env);
    await moreThan(prefix, 3);
    await service.end('SIGKILL');
    const { length } = await certificatesOf(prefix);

    const again = cliForTest(['run'], { ...env, STATE_DIR: folderForTest() });
    await moreThan(prefix, length + 3);
    await again.end('SIGTERM');
    expect(again.lines().filter(({ event }) => event === 'topic-lost')).toEqual([]);

    const certificates = await certificatesOf(prefix);
    const events = await read(`${prefix}.orders`);
    expectTrue(certificates, events);
    expect(certificates[0]).toMatchObject({ undecided: 0, rejected: 0 });
    expect(certificates[0]!.read).toBeGreaterThanOrEqual(ORDERS);
    const exact = certificates.filter(({ proof }) => proof === 'exact');
    for (const each of exact) expect(each.read + each.rejected).toBe(each.total_records);
    expect(new Set(certificates.map(({ records }) => records)).size).toBeGreaterThan(1); // it did change
  });

  it('count the initial snapshot as a reading: all of it is certified, exactly', async () => {
    const prefix = 'certified-snapshot';
    const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
    cliForTest(['run'], settings(sandbox, prefix, folderForTest()));
    await moreThan(prefix, 0);
    const [certificate] = await certificatesOf(prefix);
    const counts = { total_records: ORDERS, read: ORDERS, records: ORDERS, undecided: 0 };
    expect(certificate).toMatchObject({ number: 1, ...counts, proof: 'exact' });
    expectTrue([certificate!], await read(`${prefix}.orders`));
  });

  it('come when they are asked for, with the acknowledgement', async () => {
    const prefix = 'certified-asked';
    const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
    const env = settings(sandbox, prefix, folderForTest());
    cliForTest(['run'], { ...env, CERTIFICATE_INTERVAL_MS: '3600000' });
    await moreThan(prefix, 0);
    const changed = sandbox.create('orders');
    const request = {
      ...{ type: 'certify', id: 'fresh', account: 'default', resources: ['orders', 'products'] },
      requested_at: new Date().toISOString(),
    };
    const producer = kafka().producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    const messages = [{ key: 'fresh', value: JSON.stringify(request) }];
    await producer.send({ topic: `${prefix}.signals`, messages });
    await producer.disconnect();

    const acks = async () =>
      (await read(`${prefix}.signals`)).flatMap(({ value }) =>
        value?.type === 'certify-ack' ? [value] : [],
      );
    await vi.waitFor(async () => expect(await acks()).toHaveLength(2), POLL);
    expect(await acks()).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ resource: 'orders', status: 'done', number: 2 }),
        expect.objectContaining({ resource: 'products', status: 'refused', number: null }),
      ]),
    );
    const certificates = await certificatesOf(prefix);
    expect(certificates.at(-1)).toMatchObject({ number: 2, records: ORDERS + 1, proof: 'exact' });
    const events = await read(`${prefix}.orders`);
    expect(events.some(({ key }) => key === String(changed))).toBe(true);
    expectTrue(certificates, events);
  });

  it('begin anew with a topic of which records were deleted: that is found at the next start', async () => {
    const prefix = 'certified-lost';
    const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
    const env = { ...settings(sandbox, prefix, folderForTest()), CERTIFICATE_INTERVAL_MS: '100' };
    const service = cliForTest(['run'], env);
    await moreThan(prefix, 0);
    await service.end('SIGTERM');
    const before = await certificatesOf(prefix);
    const { position, records } = before[0]!.partitions[1]!;
    await deleteCompacted(kafka(), `${prefix}.orders`, 1, String(Math.floor(position / 2)));
    const left = digestOf(await read(`${prefix}.orders`), 1, position).records;
    expect([left > 0, left < records]).toEqual([true, true]);

    const again = cliForTest(['run'], env);
    const { msg } = await again.logged(({ event }) => event === 'topic-lost');
    expect(msg).toMatch(/partition 1 begins at \d+ and not at 0 .*records were deleted/);
    await moreThan(prefix, before.length);
    const certificates = await certificatesOf(prefix);
    const counts = { total_records: ORDERS, read: ORDERS, records: ORDERS, proof: 'exact' };
    expect(certificates.at(-1)).toMatchObject(counts);
    const [newest] = certificates.slice(-1);
    expectTrue([{ ...newest!, number: 1 }], await read(`${prefix}.orders`));
  });

  it('find a topic that has other keys than were published, once it is read back', async () => {
    const prefix = 'certified-struck';
    const sandbox = await sandboxForTest({ records: { orders: ORDERS } });
    const env = { ...settings(sandbox, prefix, folderForTest()), CERTIFICATE_INTERVAL_MS: '100' };
    const service = cliForTest(['run'], env);
    await moreThan(prefix, 0);
    await service.end('SIGTERM');
    const before = await certificatesOf(prefix);
    const [{ key, partition }] = (await read(`${prefix}.orders`)) as [Read];
    const producer = kafka().producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    await producer.send({ topic: `${prefix}.orders`, messages: [{ key, value: null, partition }] });
    await producer.disconnect();

    const again = cliForTest(['run'], { ...env, STATE_DIR: folderForTest() });
    const { msg, partitions } = await again.logged(({ event }) => event === 'topic-lost');
    const { records } = before[0]!.partitions[partition]!;
    expect(msg).toMatch(
      new RegExp(
        `partition ${partition} has ${records - 1} live keys and not ${records}: .*backup`,
      ),
    );
    expect(partitions).toEqual([partition]);
    await moreThan(prefix, before.length);
    const events = await read(`${prefix}.orders`);
    const repaired = events.filter((event) => event.key === key);
    expect(repaired.map(({ value }) => value?.op)).toEqual(['r', undefined, 'r']);
    const newest = (await certificatesOf(prefix)).at(-1)!;
    expect(newest).toMatchObject({ records: ORDERS, read: ORDERS, proof: 'exact' });
    expectTrue([{ ...newest, number: 1 }], events);
    expect(await read(`${prefix}.order-status-changes`)).toEqual([]);
  });
});

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isCached, findJava, findMaven } from '../../src/devstack/jar-cache.ts';
import { startOnJava } from '../../src/devstack/java-services.ts';
import type { JavaServices } from '../../src/devstack/services.ts';
import { openKafkaProducer } from '../../src/sinks/producer/kafka-producer.ts';
import type { Message } from '../../src/sinks/sink.ts';
import { holdRequest, KafkaProxy } from '../support/proxy/kafka-proxy.ts';
import { consoleConsumed } from './support/console-consumer.ts';
import { createTopic } from './support/created-topic.ts';
import { dumpedLog } from './support/dumped-log.ts';
import type { DumpedBatch, DumpedRecord } from './support/dumped-log.ts';
import { kafkaTools } from './support/java-tool.ts';
import type { KafkaTools } from './support/java-tool.ts';
import { hasKcat, kcatRead } from './support/kcat.ts';
import { kafkajsRead } from './support/kafkajs-read.ts';
import { large, many, odd } from './support/odd-messages.ts';
import { serverVersions } from './support/server-versions.ts';
import { contentOf, inOrder, textOf } from './support/stored-record.ts';
import type { StoredRecord } from './support/stored-record.ts';

const TOPIC = 'strangers';
const PARTITIONS = 3;
/** More than a thousand for each partition. */
const MANY = 4_000;
/** More than two batches' bytes. */
const LARGE = 40;
/** Four programs in Java, on a machine that is busy with other tests. */
const HOOK_TIMEOUT_MS = 240_000;

const java = await findJava(process.env);
const jars = (await isCached(serverVersions())) || (await findMaven(process.env)).found;
const canStart = java.found && jars;
if (!canStart) console.warn('no Java, or no jars: what we write is shown to no other client');
if (!hasKcat) console.warn('kcat is not on the PATH: what we write is not shown to librdkafka');

/** Each reads the same log on its own: what one of them forgives another may not. The broker is the test's own: its files are read. */
describe.runIf(canStart)('what openKafkaProducer writes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'cellarstream-strangers-'));
  const command = java.found ? java.command : '';
  const closing: (() => unknown)[] = [];
  let services: JavaServices;
  let broker: string;
  let tools: KafkaTools;
  let written: Message[];
  let aborted: Message[];
  let open: Message[];
  let began: number;
  let ended: number;
  /** As kafkajs reads it. */
  let read: StoredRecord[];

  const producer = (transactionalId: string, address = broker) =>
    openKafkaProducer({
      kafka: new Kafka({ brokers: [address], logLevel: logLevel.NOTHING }),
      transactionalId,
      partitions: new Map([[TOPIC, PARTITIONS]]),
    });

  /** Has everything sent but the end of the transaction, which the broker only gets when `until` has come. */
  const sendOnly = async (
    transactionalId: string,
    messages: readonly Message[],
    until: Promise<unknown>,
  ) => {
    const proxy = await KafkaProxy.listen(broker);
    closing.push(() => proxy.close());
    const sink = await producer(transactionalId, proxy.address);
    closing.push(() => sink.close());
    const { begun } = proxy.strike(
      { api: 'EndTxn' },
      holdRequest(() => until),
    );
    const outcome = sink.commit(messages).then(
      () => 'committed',
      () => 'refused',
    );
    await Promise.race([begun, outcome]);
    return { outcome };
  };

  beforeAll(async () => {
    [services, tools] = await Promise.all([
      startOnJava(command, { ...serverVersions(), kafka: { settings: { 'log.dirs': folder } } }),
      kafkaTools(),
    ]);
    broker = services.brokers[0]!;
    const kafka = new Kafka({ brokers: [broker], logLevel: logLevel.NOTHING });
    await createTopic(kafka, { topic: TOPIC, numPartitions: PARTITIONS });

    const to = (contents: readonly Omit<Message, 'topic'>[]): Message[] =>
      contents.map((content) => ({ topic: TOPIC, ...content }));
    const transactions = [to([{ key: 'alone', value: Buffer.from('1') }]), to(odd())];
    transactions.push(to(many(MANY, 'many')), to(large(LARGE)));
    const last = to(many(20 * PARTITIONS, 'last'));
    aborted = to([...many(100, 'aborted'), { key: 'tombstone', value: null, headers: { no: '' } }]);
    open = to(many(100, 'open'));
    written = [...transactions.flat(), ...last];

    began = Date.now();
    const sink = await producer('first');
    for (const messages of transactions) await sink.commit(messages);
    await sink.close();
    let fence: () => void;
    const fenced = new Promise<void>((resolve) => (fence = resolve));
    const { outcome } = await sendOnly('first', aborted, fenced);
    const next = await producer('first');
    fence!();
    expect(await outcome).toBe('refused');
    await next.commit(last);
    await next.close();
    let release: () => void;
    const undecided = await sendOnly(
      'other',
      open,
      new Promise<void>((resolve) => (release = resolve)),
    );
    closing.push(async () => {
      release();
      await undecided.outcome;
    });
    ended = Date.now();
    read = await kafkajsRead(broker, TOPIC, (records) => {
      const keys = new Set(records.map(({ key }) => key?.toString()));
      return last.every(({ key }) => keys.has(key!));
    });
  }, HOOK_TIMEOUT_MS);
  afterAll(async () => {
    for (const close of closing.reverse()) await close();
    await services?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The place of each record among those that were written: each is unlike all others. */
  const placesOf = (records: readonly Pick<StoredRecord, 'key' | 'value' | 'headers'>[]) => {
    const places = new Map(contents(written).map((content, place) => [content, place]));
    return records.map((record) => places.get(contentOf(record)));
  };

  it('kafkajs reads: all that was committed, once, in order, and nothing else', () => {
    expect(sorted(read.map(contentOf))).toEqual(sorted(contents(written)));
    expect(new Set(read.map(contentOf)).size).toBe(written.length);
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const own = inOrder(read.filter((record) => record.partition === partition));
      const places = placesOf(own);
      expect(places).toEqual([...places].sort((a, b) => a! - b!));
      expect(own.length).toBeGreaterThan(1_000);
    }
    const times = read.map(({ timestamp }) => timestamp);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(began);
    expect(Math.max(...times)).toBeLessThanOrEqual(ended);
  });

  it.runIf(hasKcat)('librdkafka reads, as kafkajs does', async () => {
    const found = await kcatRead(broker, TOPIC);
    expect(inOrder(found).map(textOf)).toEqual(inOrder(read).map(textOf));
  });

  it("Java's console consumer reads, as kafkajs does", async (test) => {
    if (!tools.clients) return test.skip('Maven did not fetch kafka-tools');
    const found = await consoleConsumed({
      ...{ java: command, classPath: tools.clients, folder },
      ...{ broker, topic: TOPIC, count: written.length },
    });
    expect(inOrder(found).map(textOf)).toEqual(inOrder(read).map(textOf));
  });

  describe('kafka-dump-log prints', () => {
    let batches: DumpedBatch[];
    beforeAll(async () => {
      const files = Array.from({ length: PARTITIONS }, (_, partition) => {
        const own = join(folder, `${TOPIC}-${partition}`);
        return readdirSync(own)
          .filter((file) => file.endsWith('.log'))
          .map((file) => join(own, file));
      });
      batches = await dumpedLog(command, tools.broker, files.flat());
    });
    const data = () => batches.filter(({ marker }) => marker === undefined);

    it('every batch valid and transactional, the larger ones compressed, one behind the other', () => {
      const codecs = new Set<string | undefined>();
      for (const { fields, records, marker } of batches) {
        expect(fields).toMatchObject({ magic: '2', isvalid: 'true', isTransactional: 'true' });
        expect(fields.isControl).toBe(String(marker !== undefined));
        if (marker) continue;
        codecs.add(fields.compresscodec);
        if (fields.compresscodec !== 'gzip') {
          expect(fields.compresscodec).toBe('none');
          expect(Number(fields.size)).toBeLessThan(2_048 + 61); // with the header of a batch
        }
        const numbers = records.map(({ offset }) => offset);
        const first = Number(fields.baseOffset);
        expect(numbers).toEqual(records.map((_, n) => first + n));
        expect(Number(fields.lastOffset)).toBe(first + Number(fields.count) - 1);
        expect(records).toHaveLength(Number(fields.count));
      }
      expect(codecs).toContain('gzip');
      for (const own of byFile(batches)) {
        let [offset, position] = [0, 0];
        for (const { fields } of own) {
          expect([fields.baseOffset, fields.position].map(Number)).toEqual([offset, position]);
          offset = Number(fields.lastOffset) + 1;
          position += Number(fields.size);
        }
      }
      const counts = data().map(({ records }) => records.length);
      expect(Math.min(...counts)).toBe(1);
      expect(Math.max(...counts)).toBeGreaterThan(1_000);
    });

    it('sequences of each producer and epoch without a gap', () => {
      for (const own of byFile(data())) {
        const next = new Map<string, number>();
        for (const { fields, records } of own) {
          const writer = `${fields.producerId}/${fields.producerEpoch}`;
          let sequence = next.get(writer) ?? 0;
          expect(Number(fields.producerId)).toBeGreaterThanOrEqual(0);
          expect(Number(fields.baseSequence)).toBe(sequence);
          for (const record of records) expect(record.sequence).toBe(sequence++);
          expect(Number(fields.lastSequence)).toBe(sequence - 1);
          next.set(writer, sequence);
        }
      }
    });

    it('the records that readers see between commits, those that were aborted, and those that are undecided', () => {
      const { COMMIT, ABORT, none, batchesOfOne } = outcomes(batches);
      expect(COMMIT.map(dumpedText)).toEqual(inOrder(read).map(textAsDumped));
      expect(sorted(ABORT.map(dumpedContent))).toEqual(sorted(aborted.map(contentAsDumped)));
      expect(sorted(none.map(dumpedContent))).toEqual(sorted(open.map(contentAsDumped)));
      // Of the large ones, which have one key.
      expect(batchesOfOne).toBeGreaterThan(2);
    });
  });
});

type Placed = DumpedRecord & { readonly partition: number };

/** Of all partitions, what became of each record; and of how many batches the largest part of a transaction was. */
function outcomes(batches: readonly DumpedBatch[]) {
  const found = { COMMIT: [] as Placed[], ABORT: [] as Placed[], none: [] as Placed[] };
  let batchesOfOne = 0;
  byFile(batches).forEach((own, partition) => {
    const pending = new Map<string, Placed[][]>();
    for (const { fields, records, marker } of own) {
      const { producerId } = fields;
      const before = pending.get(producerId!) ?? [];
      if (marker) {
        found[marker].push(...before.flat());
        batchesOfOne = Math.max(batchesOfOne, before.length);
        pending.delete(producerId!);
      } else {
        pending.set(producerId!, [...before, records.map((each) => ({ ...each, partition }))]);
      }
    }
    found.none.push(...[...pending.values()].flat(2));
  });
  return { ...found, COMMIT: inOrder(found.COMMIT), batchesOfOne };
}

/** In the order of the partitions. */
function byFile(batches: readonly DumpedBatch[]): DumpedBatch[][] {
  const files = [...new Set(batches.map(({ file }) => file))].sort();
  return files.map((file) => batches.filter((batch) => batch.file === file));
}

function contents(messages: readonly Message[]): string[] {
  return messages.map(({ key, value, headers }) =>
    contentOf({
      key: key === null ? null : Buffer.from(key),
      value,
      headers: Object.entries(headers ?? {}),
    }),
  );
}

/** What the tool and we take for a character where bytes are none differs in number. */
const NO_TEXT = '\uFFFD';
const SHOWN = 100;

/** Values as text, where they are text. */
function dumpedContent({ key, keySize, value, valueSize, headerNames }: DumpedRecord): string {
  const text = value?.includes(NO_TEXT) ? NO_TEXT : value;
  const shown = [key, text].map((each) => each && (each.length > SHOWN ? digestOf(each) : each));
  return JSON.stringify([...shown, keySize, valueSize, headerNames]);
}

function contentAsDumped(message: Pick<Message, 'key' | 'value' | 'headers'>): string {
  const { key, value, headers } = message;
  const keySize = key === null ? -1 : Buffer.byteLength(key);
  const names = Object.keys(headers ?? {});
  return dumpedContent({
    ...{ offset: 0, timestamp: 0, sequence: 0, headerNames: names, keySize },
    ...{ key: key ?? undefined, value: value?.toString(), valueSize: value?.length ?? -1 },
  });
}

function dumpedText({ partition, offset, timestamp, ...record }: Placed): string {
  return `${partition}:${offset} ${timestamp} ${dumpedContent({ ...record, offset, timestamp })}`;
}

function textAsDumped({ partition, offset, timestamp, ...record }: StoredRecord): string {
  const { key, value, headers } = record;
  const content = contentAsDumped({
    ...{ key: key?.toString() ?? null, value, headers: Object.fromEntries(headers) },
  });
  return `${partition}:${offset} ${timestamp} ${content}`;
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64');
}

function sorted(texts: readonly string[]): string[] {
  return [...texts].sort();
}

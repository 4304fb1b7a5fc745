// Batches of records as they are sent: partition by key, packing, compression, checksum.

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ZlibOptions } from 'node:zlib';

/** A header's value, as consumers know it; several of one name are headers of their own. */
export type HeaderValue = string | Buffer | null | undefined;

/** A message, without its topic. */
export interface ProducerRecord {
  readonly key: string | Buffer | null;
  /** Null is a tombstone. */
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, HeaderValue | readonly HeaderValue[]>> | undefined;
  /** Milliseconds after {@link BatchStamp.timestamp}. Default 0. */
  readonly timestampOffset?: number | undefined;
}

/** Records as they lie in a batch: all that does not depend on who sends them, and when. */
export interface PackedRecords {
  readonly count: number;
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
  /** The largest of the records, in ms. */
  readonly timestampOffset: number;
}

/** Who sends a batch, and what of theirs it follows on in its partition. */
interface BatchStamp {
  readonly producerId: bigint;
  readonly epoch: number;
  /** Of its first record: so many went to the partition before, in this epoch. */
  readonly sequence: number;
  readonly isTransactional: boolean;
  /** Timestamp of its records without an offset of their own, in ms since 1970. */
  readonly timestamp: number;
}

// The format: https://kafka.apache.org/documentation/#recordbatch
const HEADER_BYTES = 61;
/** What a batch's length does not count: the base offset, and itself. */
const BEFORE_LENGTH = 12;
const MAGIC = 2;
const CRC_AT = 17;
/** The checksum is of all that stands behind it. */
const CHECKED_FROM = 21;
const NOT_COMPRESSED = 0;
const GZIP = 1;
const TRANSACTIONAL = 0x10;
/** Brokers put these in. */
const NO_OFFSET = 0n;
const NO_LEADER_EPOCH = -1;

/**
 * The level, of 1 to 9, is 6 by default: 2 takes half of its time, for 15 % more bytes (docs/performance.md has all of them). The
 * memory is 8 by default: 9 takes a little less time.
 */
const GZIP_OPTIONS = { level: 2, memLevel: 9 };
/** Most room for what comes out at once: zlib goes through the event loop once for each piece. */
const MAX_PIECE_BYTES = 2 ** 18;
/** What gzip needs beside half of what goes in: events take a quarter, and what takes more comes in several pieces. */
const GZIP_OVERHEAD_BYTES = 1_024;

/** Fewer bytes stay as they are: to set gzip up takes longer, and 0.4 MB. Most commits at rest are a cursor or a ledger's entry. */
const MIN_COMPRESSED_BYTES = 2_048;

const compress: (bytes: Buffer, options: ZlibOptions) => Promise<Buffer> = promisify(gzip);

/**
 * Records as they lie in one batch, compressed on zlib's threads, so that several can be packed at once.
 *
 * @param room The sum of their {@link maxBytesOf}.
 */
export async function packed(
  records: readonly ProducerRecord[],
  room: number,
): Promise<PackedRecords> {
  const count = records.length;
  const out: Output = { bytes: Buffer.allocUnsafe(room), at: 0 };
  let timestampOffset = 0;
  for (const [place, record] of records.entries()) {
    writeRecord(out, record, place);
    timestampOffset = Math.max(timestampOffset, record.timestampOffset ?? 0);
  }
  const raw = out.bytes.subarray(0, out.at);
  const whole = { count, timestampOffset };
  if (raw.length < MIN_COMPRESSED_BYTES) return { ...whole, bytes: raw, isCompressed: false };
  const chunkSize = Math.min(MAX_PIECE_BYTES, raw.length / 2 + GZIP_OVERHEAD_BYTES);
  const bytes = await compress(raw, { ...GZIP_OPTIONS, chunkSize: Math.ceil(chunkSize) });
  return { ...whole, bytes, isCompressed: true };
}

/** A batch as it goes to a broker and into its log: version 2, with its checksum. */
export function recordBatch(records: PackedRecords, stamp: BatchStamp): Buffer {
  const { count, bytes, isCompressed } = records;
  const codec = isCompressed ? GZIP : NOT_COMPRESSED;
  const batch = Buffer.allocUnsafe(HEADER_BYTES + bytes.length);
  let at = batch.writeBigInt64BE(NO_OFFSET, 0);
  at = batch.writeInt32BE(batch.length - BEFORE_LENGTH, at);
  at = batch.writeInt32BE(NO_LEADER_EPOCH, at);
  at = batch.writeInt8(MAGIC, at);
  at += 4; // the checksum, once there is what it is of
  at = batch.writeInt16BE(codec | (stamp.isTransactional ? TRANSACTIONAL : 0), at);
  at = batch.writeInt32BE(count - 1, at); // the last record's offset, less the first one's
  at = batch.writeBigInt64BE(BigInt(stamp.timestamp), at);
  at = batch.writeBigInt64BE(BigInt(stamp.timestamp + records.timestampOffset), at); // the newest of all
  at = batch.writeBigInt64BE(stamp.producerId, at);
  at = batch.writeInt16BE(stamp.epoch, at);
  at = batch.writeInt32BE(stamp.sequence, at);
  at = batch.writeInt32BE(count, at);
  bytes.copy(batch, at);
  batch.writeUInt32BE(crc32c(batch.subarray(CHECKED_FROM)), CRC_AT);
  return batch;
}

/** At most so many bytes does a record take in a batch that is not compressed. */
export function maxBytesOf({ key, value, headers }: ProducerRecord): number {
  let bytes = MAX_FRAME_BYTES + lengthOf(key) + lengthOf(value);
  for (const [name, text] of headersOf(headers)) {
    bytes += MAX_HEADER_FRAME_BYTES + lengthOf(name) + lengthOf(text);
  }
  return bytes;
}

/** Lengths, attributes, offset, time and number of headers, as long as they come. */
const MAX_FRAME_BYTES = 32;
const MAX_HEADER_FRAME_BYTES = 10;

interface Output {
  readonly bytes: Buffer;
  at: number;
}

function writeRecord(out: Output, record: ProducerRecord, place: number): void {
  const { key, value, headers, timestampOffset = 0 } = record;
  const listed = headersOf(headers);
  const keyLength = key === null ? NULL : lengthOf(key);
  const valueLength = value === null ? NULL : value.length;
  let length = 1 + varintBytes(timestampOffset) + varintBytes(place) + varintBytes(listed.length);
  length += fieldBytes(keyLength) + fieldBytes(valueLength);
  for (const [name, text] of listed) {
    length += fieldBytes(lengthOf(name)) + fieldBytes(text == null ? NULL : lengthOf(text));
  }
  writeVarint(out, length);
  out.bytes[out.at++] = 0; // attributes: none are in use
  writeVarint(out, timestampOffset);
  writeVarint(out, place);
  writeField(out, key, keyLength);
  writeField(out, value, valueLength);
  writeVarint(out, listed.length);
  for (const [name, text] of listed) {
    writeField(out, name, lengthOf(name));
    writeField(out, text, text == null ? NULL : lengthOf(text));
  }
}

/** The length of what is not there. */
const NULL = -1;

function headersOf(headers: ProducerRecord['headers']): [string, HeaderValue][] {
  if (!headers) return NO_HEADERS;
  return Object.entries(headers).flatMap(([name, value]) =>
    Array.isArray(value)
      ? value.map((each: HeaderValue): [string, HeaderValue] => [name, each])
      : [[name, value as HeaderValue]],
  );
}

const NO_HEADERS: [string, HeaderValue][] = [];

function lengthOf(value: HeaderValue): number {
  if (value == null) return 0;
  return typeof value === 'string' ? Buffer.byteLength(value) : value.length;
}

function fieldBytes(length: number): number {
  return varintBytes(length) + Math.max(0, length);
}

function writeField(out: Output, value: HeaderValue, length: number): void {
  writeVarint(out, length);
  if (value == null) return;
  if (typeof value === 'string') out.bytes.write(value, out.at);
  else out.bytes.set(value, out.at);
  out.at += length;
}

/** Zigzag and seven bits a byte, of 32 bits. */
function writeVarint(out: Output, value: number): void {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0;
  while (rest > 0x7f) {
    out.bytes[out.at++] = (rest & 0x7f) | 0x80;
    rest >>>= 7;
  }
  out.bytes[out.at++] = rest;
}

function varintBytes(value: number): number {
  const rest = ((value << 1) ^ (value >> 31)) >>> 0;
  return rest < 0x80 ? 1 : rest < 0x4000 ? 2 : rest < 0x200000 ? 3 : rest < 0x10000000 ? 4 : 5;
}

/** Batches of one partition, in the order in which they have to be there. */
export interface PartitionBatches {
  readonly topic: string;
  readonly partition: number;
  readonly batches: readonly PackedRecords[];
}

/** Of messages in one batch, before they are compressed: brokers take 1 MiB, unless told otherwise. */
export const MAX_BATCH_BYTES = 900_000;
/** What a batch has beside its messages, and what gzip may add to bytes that it can't make fewer. */
const BATCH_OVERHEAD_BYTES = 1_000;
/** For a message's key and headers. */
const KEY_AND_HEADER_BYTES = 10_000;

/** Most bytes of messages in one batch, where a topic takes batches of `max.message.bytes`. Default a broker's own. */
function maxBatchBytes(maxMessageBytes = Infinity): number {
  return Math.min(MAX_BATCH_BYTES, maxMessageBytes - BATCH_OVERHEAD_BYTES);
}

/** Most bytes of one message's value, so that a batch can hold it with its key and headers. */
export function maxEventBytes(maxMessageBytes?: number): number {
  return maxBatchBytes(maxMessageBytes) - KEY_AND_HEADER_BYTES;
}

/** A message that knows its partition. */
export interface PlacedRecord extends ProducerRecord {
  readonly topic: string;
  readonly partition: number;
}

/**
 * Packs messages into batches of no more bytes than a broker takes, each partition's in the order given. All
 * are packed side by side, so that they take as long as the processors do.
 */
export function batchesOf(
  records: Iterable<PlacedRecord>,
  maxMessageBytes: ReadonlyMap<string, number> = new Map(),
): Promise<PartitionBatches[]> {
  const partitions = new Map<string, Filling>();
  for (const record of records) {
    const { topic, partition } = record;
    const name = `${topic} ${partition}`;
    let filling = partitions.get(name);
    if (!filling) {
      const maxBytes = maxBatchBytes(maxMessageBytes.get(topic));
      partitions.set(name, (filling = { topic, partition, maxBytes, batches: [] }));
    }
    const bytes = maxBytesOf(record);
    const last = filling.batches.at(-1);
    if (last && last.bytes + bytes <= filling.maxBytes) {
      last.records.push(record);
      last.bytes += bytes;
    } else filling.batches.push({ records: [record], bytes });
  }
  return Promise.all(
    [...partitions.values()].map(async ({ topic, partition, batches }) => ({
      topic,
      partition,
      batches: await Promise.all(batches.map(({ records, bytes }) => packed(records, bytes))),
    })),
  );
}

interface Filling {
  readonly topic: string;
  readonly partition: number;
  /** Of one batch. */
  readonly maxBytes: number;
  /** All but the last are full. `bytes`: the most that the records may take. */
  readonly batches: { readonly records: PlacedRecord[]; bytes: number }[];
}

/** Castagnoli's polynomial, reflected: the one that Kafka's batches are checked with. */
const POLYNOMIAL = 0x82f63b78;
/** So many bytes are taken at once, each by a table of its own. */
const SLICES = 8;

const TABLES: readonly Int32Array[] = tables();

/** CRC-32C of bytes, unsigned; `seed` is that of what stands before them. */
export function crc32c(bytes: Uint8Array, seed = 0): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as Tables;
  const whole = bytes.length - (bytes.length % SLICES);
  let crc = ~seed;
  let at = 0;
  for (; at < whole; at += SLICES) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc =
      t7[crc & 0xff]! ^
      t6[(crc >>> 8) & 0xff]! ^
      t5[(crc >>> 16) & 0xff]! ^
      t4[crc >>> 24]! ^
      t3[bytes[at + 4]!]! ^
      t2[bytes[at + 5]!]! ^
      t1[bytes[at + 6]!]! ^
      t0[bytes[at + 7]!]!;
  }
  for (; at < bytes.length; at++) crc = t0[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

type T = Int32Array;
type Tables = readonly [T, T, T, T, T, T, T, T];

/** By slice: what a byte does to the sum when so many others follow it. */
function tables(): Int32Array[] {
  const first = Int32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    return crc;
  });
  const all = [first];
  while (all.length < SLICES) {
    all.push(all.at(-1)!.map((crc) => first[crc & 0xff]! ^ (crc >>> 8)));
  }
  return all;
}

const SEED = 0x9747b28c;
const M = 0x5bd1e995;
const R = 24;

/** Which of so many partitions a key belongs to, as Java's client has it: murmur2, without its sign. */
export function partitionOf(key: string | Buffer, partitions: number): number {
  return (murmur2(typeof key === 'string' ? Buffer.from(key) : key) & 0x7fffffff) % partitions;
}

/** 32 bits, with a sign. */
function murmur2(bytes: Buffer): number {
  const { length } = bytes;
  const whole = length - (length % 4);
  let hash = SEED ^ length;
  for (let at = 0; at < whole; at += 4) {
    let k = Math.imul(bytes.readInt32LE(at), M);
    k = Math.imul(k ^ (k >>> R), M);
    hash = Math.imul(hash, M) ^ k;
  }
  if (length > whole) {
    for (let at = length - 1; at >= whole; at--) hash ^= bytes[at]! << (8 * (at - whole));
    hash = Math.imul(hash, M);
  }
  hash = Math.imul(hash ^ (hash >>> 13), M);
  return hash ^ (hash >>> 15);
}

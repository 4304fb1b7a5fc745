// Encodes record batches as they are sent: partition by key, packing, compression, checksum.

import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ZlibOptions } from 'node:zlib';

/** Value of one message header. Null and undefined stand for a header without a value. */
export type HeaderValue = string | Buffer | null | undefined;

/** A message to be written, without its topic. */
export interface ProducerRecord {
  readonly key: string | Buffer | null;
  /** Content of the message; null for a tombstone. */
  readonly value: Buffer | null;
  readonly headers?: Readonly<Record<string, HeaderValue | readonly HeaderValue[]>> | undefined;
  /** Difference between the message's timestamp and {@link BatchStamp.timestamp}, in ms. Default 0. */
  readonly timestampOffset?: number | undefined;
}

/** Encoded messages of a batch, without the batch header, which depends on the producer and the time. */
export interface PackedRecords {
  readonly count: number;
  readonly bytes: Buffer;
  readonly isCompressed: boolean;
  readonly timestampOffset: number;
}

interface BatchStamp {
  readonly producerId: bigint;
  readonly epoch: number;
  /** Sequence number of the batch's first message. A producer identity numbers its messages to a partition from 0, modulo 2^31. */
  readonly sequence: number;
  readonly isTransactional: boolean;
  /** Timestamp of messages without a `timestampOffset`, in epoch ms. */
  readonly timestamp: number;
}

// Format of a batch: https://kafka.apache.org/documentation/#recordbatch
const HEADER_BYTES = 61;
/** Size of the fields at the beginning of a batch that its length field does not count, in bytes: the base offset and the length field. */
const BEFORE_LENGTH = 12;
const MAGIC = 2;
const CRC_AT = 17;
const CHECKED_FROM = 21;
const NOT_COMPRESSED = 0;
const GZIP = 1;
const TRANSACTIONAL = 0x10;
const NO_OFFSET = 0n;
const NO_LEADER_EPOCH = -1;

/** Options of gzip. Level 2 (of 1 to 9) takes half the time of the default, 6, and its output is 15 % larger (docs/performance.md). */
const GZIP_OPTIONS = { level: 2, memLevel: 9 };
/** Largest output chunk of gzip, in bytes. If it is too small, there are more chunks, each of which costs zlib a turn of the event loop. */
const MAX_PIECE_BYTES = 2 ** 18;
/**
 * Constant part of the size of gzip's output chunks, in bytes. A chunk's size is this constant plus half the size of the input, but at most
 * `MAX_PIECE_BYTES`.
 */
const GZIP_OVERHEAD_BYTES = 1_024;

/**
 * Smallest size, in bytes, at which the encoded messages of a batch are compressed. If it is too small, compressing small batches takes
 * longer than it saves.
 */
const MIN_COMPRESSED_BYTES = 2_048;

const compress: (bytes: Buffer, options: ZlibOptions) => Promise<Buffer> = promisify(gzip);

/**
 * Encodes the messages of one batch. If their encoded size is {@link MIN_COMPRESSED_BYTES} or more, compresses them on zlib's threads.
 *
 * @param room Upper bound of the messages' encoded size before compression, in bytes.
 */
export async function packRecords(
  records: readonly ProducerRecord[],
  room: number,
): Promise<PackedRecords> {
  const count = records.length;
  const out: Output = { bytes: Buffer.allocUnsafe(room), at: 0 };
  let timestampOffset = 0;
  for (const [index, record] of records.entries()) {
    writeRecord(out, record, index);
    timestampOffset = Math.max(timestampOffset, record.timestampOffset ?? 0);
  }
  const raw = out.bytes.subarray(0, out.at);
  const whole = { count, timestampOffset };
  if (raw.length < MIN_COMPRESSED_BYTES) return { ...whole, bytes: raw, isCompressed: false };
  // Events compress to about a quarter of their size, so the output of most batches fits into one chunk.
  const chunkSize = Math.min(MAX_PIECE_BYTES, raw.length / 2 + GZIP_OVERHEAD_BYTES);
  const bytes = await compress(raw, { ...GZIP_OPTIONS, chunkSize: Math.ceil(chunkSize) });
  return { ...whole, bytes, isCompressed: true };
}

/** Encodes a batch in the format in which brokers store it (version 2). */
export function recordBatch(records: PackedRecords, stamp: BatchStamp): Buffer {
  const { count, bytes, isCompressed } = records;
  const codec = isCompressed ? GZIP : NOT_COMPRESSED;
  const batch = Buffer.allocUnsafe(HEADER_BYTES + bytes.length);
  let at = batch.writeBigInt64BE(NO_OFFSET, 0);
  at = batch.writeInt32BE(batch.length - BEFORE_LENGTH, at);
  at = batch.writeInt32BE(NO_LEADER_EPOCH, at);
  at = batch.writeInt8(MAGIC, at);
  at += 4; // checksum: written at the end
  at = batch.writeInt16BE(codec | (stamp.isTransactional ? TRANSACTIONAL : 0), at);
  at = batch.writeInt32BE(count - 1, at); // last offset delta
  at = batch.writeBigInt64BE(BigInt(stamp.timestamp), at);
  at = batch.writeBigInt64BE(BigInt(stamp.timestamp + records.timestampOffset), at); // maximum timestamp
  at = batch.writeBigInt64BE(stamp.producerId, at);
  at = batch.writeInt16BE(stamp.epoch, at);
  at = batch.writeInt32BE(stamp.sequence, at);
  at = batch.writeInt32BE(count, at);
  bytes.copy(batch, at);
  batch.writeUInt32BE(crc32c(batch.subarray(CHECKED_FROM)), CRC_AT);
  return batch;
}

/** Returns an upper bound of a message's size in an uncompressed batch, in bytes. */
export function maxBytesOf({ key, value, headers }: ProducerRecord): number {
  let bytes = MAX_FRAME_BYTES + lengthOf(key) + lengthOf(value);
  for (const [name, text] of headersOf(headers)) {
    bytes += MAX_HEADER_FRAME_BYTES + lengthOf(name) + lengthOf(text);
  }
  return bytes;
}

/** Largest number of bytes that a message takes in a batch in addition to its key, value and headers. */
const MAX_FRAME_BYTES = 32;
/** Largest total size of the two length fields of a message header, in bytes: the length of its name, and that of its value. */
const MAX_HEADER_FRAME_BYTES = 10;

interface Output {
  readonly bytes: Buffer;
  at: number;
}

function writeRecord(out: Output, record: ProducerRecord, index: number): void {
  const { key, value, headers, timestampOffset = 0 } = record;
  const listed = headersOf(headers);
  const keyLength = key === null ? NULL_LENGTH : lengthOf(key);
  const valueLength = value === null ? NULL_LENGTH : value.length;
  let length = 1 + varintBytes(timestampOffset) + varintBytes(index) + varintBytes(listed.length);
  length += fieldBytes(keyLength) + fieldBytes(valueLength);
  for (const [name, text] of listed) {
    length += fieldBytes(lengthOf(name)) + fieldBytes(text == null ? NULL_LENGTH : lengthOf(text));
  }
  writeVarint(out, length);
  out.bytes[out.at++] = 0; // attributes: none are in use
  writeVarint(out, timestampOffset);
  writeVarint(out, index);
  writeField(out, key, keyLength);
  writeField(out, value, valueLength);
  writeVarint(out, listed.length);
  for (const [name, text] of listed) {
    writeField(out, name, lengthOf(name));
    writeField(out, text, text == null ? NULL_LENGTH : lengthOf(text));
  }
}

const NULL_LENGTH = -1;

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

/** Writes a 32-bit number as a zigzag varint, with seven bits in each byte. */
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

/** Batches of one partition, in the order in which they must be written. */
export interface PartitionBatches {
  readonly topic: string;
  readonly partition: number;
  readonly batches: readonly PackedRecords[];
}

/**
 * Largest size of the messages in one batch, before compression, in bytes. If it is too large, brokers refuse the batch, by default above 1
 * MiB.
 */
export const MAX_BATCH_BYTES = 900_000;
/** Upper bound of a batch's size without its messages, in bytes: the header, and what gzip may add to incompressible data. */
const BATCH_OVERHEAD_BYTES = 1_000;
/** Size that {@link maxEventBytes} reserves for the key and headers of a message, in bytes. */
const KEY_AND_HEADER_BYTES = 10_000;

function maxBatchBytes(maxMessageBytes = Infinity): number {
  return Math.min(MAX_BATCH_BYTES, maxMessageBytes - BATCH_OVERHEAD_BYTES);
}

/**
 * Returns the maximum size of a message's value, in bytes, with which the message fits into a batch. Reserves `KEY_AND_HEADER_BYTES` for
 * its key and headers.
 *
 * @param maxMessageBytes The topic's `max.message.bytes`. Default: only {@link MAX_BATCH_BYTES} limits a batch.
 */
export function maxEventBytes(maxMessageBytes?: number): number {
  return maxBatchBytes(maxMessageBytes) - KEY_AND_HEADER_BYTES;
}

export interface PartitionedRecord extends ProducerRecord {
  readonly topic: string;
  readonly partition: number;
}

/**
 * Packs messages, in their order, into batches that are no larger than their topics accept. A message that exceeds this size by itself is
 * packed alone; the broker may refuse the batch.
 */
export function batchesOf(
  records: Iterable<PartitionedRecord>,
  maxMessageBytes: ReadonlyMap<string, number> = new Map(),
): Promise<PartitionBatches[]> {
  const partitions = new Map<string, OpenBatches>();
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
      batches: await Promise.all(batches.map(({ records, bytes }) => packRecords(records, bytes))),
    })),
  );
}

interface OpenBatches {
  readonly topic: string;
  readonly partition: number;
  readonly maxBytes: number;
  /** Batches of a partition. More messages are added only to the last batch. `bytes`: upper bound of the messages' encoded size. */
  readonly batches: { readonly records: PartitionedRecord[]; bytes: number }[];
}

/** Castagnoli's polynomial with its bits reversed. It defines CRC-32C, the checksum of Kafka's batches. */
const POLYNOMIAL = 0x82f63b78;
/** Number of bytes that {@link crc32c} processes in one step. Each of them has its own lookup table. */
const SLICES = 8;

const TABLES: readonly Int32Array[] = tables();

/** Returns the CRC-32C checksum of bytes, as an unsigned number. */
export function crc32c(bytes: Uint8Array): number {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES as Tables;
  const whole = bytes.length - (bytes.length % SLICES);
  let crc = ~0;
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

/** Computes the lookup tables of {@link crc32c}. Table `n` contains the effect of a byte that is followed by `n` more bytes. */
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

/** Returns the partition for a key, as Kafka's Java client does: the murmur2 hash without its sign bit, modulo the number of partitions. */
export function partitionOf(key: string | Buffer, partitions: number): number {
  return (murmur2(typeof key === 'string' ? Buffer.from(key) : key) & 0x7fffffff) % partitions;
}

/** Returns the MurmurHash2 of bytes as Kafka computes it, as a signed 32-bit number. */
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

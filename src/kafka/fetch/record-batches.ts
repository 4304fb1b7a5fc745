// Decodes record batches, in the format of Kafka's log, and the messages in them.

import type { IHeaders, RecordBatchEntry } from 'kafkajs';
import { decompress, MalformedBytes } from './codecs.ts';

interface RecordBatch {
  readonly baseOffset: number;
  /** Offset of the last message that was written in the batch, even if compaction has removed that message. */
  readonly lastOffset: number;
  readonly leaderEpoch: number;
  readonly attributes: number;
  /** Time to which the timestamps of the batch's messages are relative, in epoch ms. */
  readonly baseTimestamp: number;
  readonly maxTimestamp: number;
  readonly producerId: bigint;
  /** Number of messages in the batch, without those that compaction has removed. */
  readonly count: number;
  readonly records: Buffer;
}

export interface LogMessage extends RecordBatchEntry {
  readonly leaderEpoch: number;
  /** Whether the timestamp was set by the broker that appended the message. False if the producer set it. */
  readonly isAppendTime: boolean;
}

/**
 * An aborted transaction in one partition: the messages of the producer `producerId` from the offset `firstOffset` up to that producer's
 * next abort marker.
 */
export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: bigint;
}

// Byte offsets of the fields in a batch: https://kafka.apache.org/documentation/#recordbatch
const LENGTH_AT = 8;
const LEADER_EPOCH_AT = 12;
const MAGIC_AT = 16;
const ATTRIBUTES_AT = 21;
const LAST_OFFSET_DELTA_AT = 23;
const BASE_TIMESTAMP_AT = 27;
const MAX_TIMESTAMP_AT = 35;
const PRODUCER_ID_AT = 43;
const COUNT_AT = 57;
const RECORDS_AT = 61;
/** Size of a batch's first two fields, in bytes: the base offset and the length. The length does not count these fields. */
const BEFORE_LENGTH = 12;
const MAGIC = 2;

const CODEC_MASK = 0x07;
const LOG_APPEND_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;
/** Type of a transaction marker that ends an aborted transaction. The type is the second 16-bit number of the marker's key. */
const ABORT = 0;

/**
 * Decodes the headers of batches. A last batch that the broker has truncated is left out.
 *
 * @throws MalformedBytes if a batch has a format from before Kafka 0.11.
 */
export function recordBatches(bytes: Buffer): RecordBatch[] {
  const batches: RecordBatch[] = [];
  let at = 0;
  while (bytes.length - at > MAGIC_AT) {
    if (bytes.readInt8(at + MAGIC_AT) !== MAGIC) {
      throw new MalformedBytes(
        'its format is from before Kafka 0.11: copy such messages to a new topic',
      );
    }
    const end = at + BEFORE_LENGTH + bytes.readInt32BE(at + LENGTH_AT);
    if (end > bytes.length || end < at + RECORDS_AT) break;
    const baseOffset = Number(bytes.readBigInt64BE(at));
    batches.push({
      baseOffset,
      lastOffset: baseOffset + bytes.readInt32BE(at + LAST_OFFSET_DELTA_AT),
      leaderEpoch: bytes.readInt32BE(at + LEADER_EPOCH_AT),
      attributes: bytes.readInt16BE(at + ATTRIBUTES_AT),
      baseTimestamp: Number(bytes.readBigInt64BE(at + BASE_TIMESTAMP_AT)),
      maxTimestamp: Number(bytes.readBigInt64BE(at + MAX_TIMESTAMP_AT)),
      producerId: bytes.readBigInt64BE(at + PRODUCER_ID_AT),
      count: bytes.readInt32BE(at + COUNT_AT),
      records: bytes.subarray(at + RECORDS_AT, end),
    });
    at = end;
  }
  return batches;
}

/**
 * Returns the batches of a `read_committed` response that contain committed messages, without transaction markers and aborted transactions.
 */
export function committedBatches(
  batches: readonly RecordBatch[],
  aborted: readonly AbortedTransaction[],
): RecordBatch[] {
  const toCome = aborted.toSorted((a, b) => Number(a.firstOffset - b.firstOffset));
  const under = new Set<bigint>(); // producers with an aborted transaction at this point of the log
  return batches.filter((batch) => {
    while (toCome[0] && toCome[0].firstOffset <= batch.lastOffset) {
      under.add(toCome.shift()!.producerId);
    }
    const { attributes, producerId } = batch;
    if (!isDataBatch(batch)) {
      if (isAbort(batch)) under.delete(producerId);
      return false;
    }
    return !(attributes & TRANSACTIONAL && under.has(producerId));
  });
}

/** Returns false for a transaction marker, and true for any other batch. */
export function isDataBatch({ attributes }: RecordBatch): boolean {
  return (attributes & CONTROL) === 0;
}

/**
 * Whether a transaction marker ends an aborted transaction. False if compaction has emptied the marker: all messages of the transaction
 * were removed before.
 */
function isAbort(marker: RecordBatch): boolean {
  return readRecords(marker, marker.records)[0]?.key?.readInt16BE(2) === ABORT;
}

/** Decodes the messages of a batch. @throws MalformedBytes if they can't be decompressed or decoded. */
export async function messagesOf(batch: RecordBatch): Promise<LogMessage[]> {
  if (batch.count === 0) return [];
  const type = batch.attributes & CODEC_MASK;
  if (type === 0) return readRecords(batch, Buffer.from(batch.records)); // copied: views would keep the whole response in memory
  return readRecords(batch, await decompress(type, batch.records));
}

/** Decodes uncompressed messages. Keys and values are views of `bytes`, not copies. */
function readRecords(batch: RecordBatch, bytes: Buffer): LogMessage[] {
  const { baseOffset, baseTimestamp, maxTimestamp, leaderEpoch, attributes, count } = batch;
  const isAppendTime = (attributes & LOG_APPEND_TIME) !== 0;
  const fields = fieldReader(bytes);
  const messages: LogMessage[] = [];
  for (let n = 0; n < count; n++) {
    const length = fields.varint();
    const end = fields.at + length;
    fields.at += 1; // the record's own attributes: none are in use
    const timestamp = baseTimestamp + fields.varint();
    const offset = baseOffset + fields.varint();
    messages.push({
      attributes: 0,
      timestamp: String(isAppendTime ? maxTimestamp : timestamp),
      leaderEpoch,
      isAppendTime,
      offset: String(offset),
      key: fields.bytes(),
      value: fields.bytes(),
      headers: headersOf(fields),
    });
    fields.at = end;
  }
  return messages;
}

function headersOf(fields: FieldReader): IHeaders {
  const headers = Object.create(null) as IHeaders; // without a prototype: header names must not collide with inherited ones
  for (let left = fields.varint(); left > 0; left--) {
    const name = String(fields.bytes());
    const value = fields.bytes() ?? undefined;
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else headers[name] = [known, value].flat().filter((each) => each !== undefined);
  }
  return headers;
}

type FieldReader = ReturnType<typeof fieldReader>;

function fieldReader(buffer: Buffer) {
  const expectIn = (end: number) => {
    if (end > buffer.length) throw new MalformedBytes('a record ends before its fields do');
  };
  const fields = {
    at: 0,
    // Exact up to 2^53, which no timestamp or length reaches.
    varint: (): number => {
      let value = 0;
      let scale = 1;
      let byte: number;
      do {
        expectIn(fields.at + 1);
        byte = buffer[fields.at++]!;
        value += (byte & 0x7f) * scale;
        scale *= 0x80;
      } while (byte & 0x80);
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    },
    /** Reads a length and that many bytes after it; returns the bytes, or null if the length is -1. */
    bytes: (): Buffer | null => {
      const length = fields.varint();
      if (length < 0) return null;
      const end = fields.at + length;
      expectIn(end);
      const bytes = buffer.subarray(fields.at, end);
      fields.at = end;
      return bytes;
    },
  };
  return fields;
}

// Batches of records as they lie in a log, and the messages in them.

import type { IHeaders, RecordBatchEntry } from 'kafkajs';
import { CellarstreamError } from '../../core/errors.ts';
import { decompress, MalformedBytes } from './codecs.ts';

/** A batch of records as it lies in a log: its header, and what is behind it. */
interface RecordBatch {
  readonly baseOffset: number;
  /** Also where compaction has taken the record that stood there. */
  readonly lastOffset: number;
  /** Of the leader that wrote it. */
  readonly leaderEpoch: number;
  readonly attributes: number;
  /** ms since 1970. */
  readonly baseTimestamp: number;
  readonly maxTimestamp: number;
  readonly producerId: bigint;
  /** Number of records that are left. */
  readonly count: number;
  /** As they were sent: compressed, perhaps. */
  readonly records: Buffer;
}

/** A message, and what its batch tells of it. */
export interface LogMessage extends RecordBatchEntry {
  /** Of the leader that wrote it. */
  readonly leaderEpoch: number;
  /** Whether its timestamp is that of the broker that wrote it. */
  readonly isAppendTime: boolean;
}

/** A transaction that was aborted: what this producer wrote from that offset on, up to the marker. */
export interface AbortedTransaction {
  readonly producerId: bigint;
  readonly firstOffset: bigint;
}

// Where the fields of a batch are: https://kafka.apache.org/documentation/#recordbatch
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
/** What the length does not count: the base offset, and itself. */
const BEFORE_LENGTH = 12;
const MAGIC = 2;

const CODEC_MASK = 0x07;
const LOG_APPEND_TIME = 0x08;
const TRANSACTIONAL = 0x10;
const CONTROL = 0x20;
/** The second half of a marker's key. */
const ABORT = 0;

/**
 * The batches of a fetch's answer, in order. Where brokers have cut the last one short it is left out.
 *
 * @throws CellarstreamError `KAFKA_REFUSED`: written in a format from before Kafka 0.11.
 */
export function recordBatches(bytes: Buffer): RecordBatch[] {
  const batches: RecordBatch[] = [];
  let at = 0;
  while (bytes.length - at > MAGIC_AT) {
    if (bytes.readInt8(at + MAGIC_AT) !== MAGIC) {
      throw new CellarstreamError(
        'KAFKA_REFUSED',
        'a topic holds messages in a format from before Kafka 0.11: copy it to a new topic',
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

/** Those of a `read_committed` answer that hold messages: no markers, nothing that was aborted. */
export function committedBatches(
  batches: readonly RecordBatch[],
  aborted: readonly AbortedTransaction[],
): RecordBatch[] {
  const toCome = aborted.toSorted((a, b) => Number(a.firstOffset - b.firstOffset));
  const under = new Set<bigint>(); // producers whose transaction ends in an abort
  return batches.filter((batch) => {
    while (toCome[0] && toCome[0].firstOffset <= batch.lastOffset) {
      under.add(toCome.shift()!.producerId);
    }
    const { attributes, producerId } = batch;
    if (!isNoMarker(batch)) {
      if (isAbort(batch)) under.delete(producerId);
      return false;
    }
    return !(attributes & TRANSACTIONAL && under.has(producerId));
  });
}

/** Whether a batch holds messages. */
export function isNoMarker({ attributes }: RecordBatch): boolean {
  return (attributes & CONTROL) === 0;
}

/** Of a marker; one that compaction has emptied ends nothing that is still to be read. */
function isAbort(marker: RecordBatch): boolean {
  return read(marker, marker.records)[0]?.key?.readInt16BE(2) === ABORT;
}

/**
 * The messages of a batch, in order.
 *
 * @throws MalformedBytes where its bytes are not what its header says.
 */
export async function messagesOf(batch: RecordBatch): Promise<LogMessage[]> {
  if (batch.count === 0) return [];
  const type = batch.attributes & CODEC_MASK;
  if (type === 0) return read(batch, Buffer.from(batch.records)); // else all of the answer is kept with it
  return read(batch, await decompress(type, batch.records));
}

/** Records that are not compressed, or no longer. Keys and values are views of them, no copies. */
function read(batch: RecordBatch, bytes: Buffer): LogMessage[] {
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
  const headers = Object.create(null) as IHeaders; // with no name in it but theirs
  for (let left = fields.varint(); left > 0; left--) {
    const name = String(fields.bytes());
    const value = fields.bytes() ?? undefined;
    const known = headers[name];
    if (known === undefined) headers[name] = value;
    else headers[name] = [known, value].flat().filter((each) => each !== undefined);
  }
  return headers;
}

interface FieldReader {
  at: number;
  varint(): number;
  /** A length and as many bytes; null where the length is -1. */
  bytes(): Buffer | null;
}

function fieldReader(buffer: Buffer): FieldReader {
  const expectIn = (end: number) => {
    if (end > buffer.length) throw new MalformedBytes('a record ends before its fields do');
  };
  const fields: FieldReader = {
    at: 0,
    // Exact up to 2^53: no time or length comes near.
    varint: () => {
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
    bytes: () => {
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

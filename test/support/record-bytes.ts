import { gzipSync } from 'node:zlib';

export interface RecordSpec {
  readonly offset: number;
  readonly key?: string | null;
  readonly value?: Buffer | null;
  readonly at?: number;
  readonly headers?: readonly (readonly [string, Buffer | null])[];
}

export interface BatchSpec {
  readonly records: readonly RecordSpec[];
  /** Default the offset of the first record. */
  readonly baseOffset?: number;
  /** Default the offset of the last record. */
  readonly lastOffset?: number;
  readonly producerId?: number;
  /** Bits of the header: 1 gzip, 8 time of the log, 16 transactional, 32 control. Default none. */
  readonly attributes?: number;
  readonly maxTimestamp?: number;
  readonly magic?: number;
}

/** A batch of records as a broker sends it, written after Kafka's documentation, apart from the reader. */
export function batchBytes(batch: BatchSpec): Buffer {
  const { records, attributes = 0, producerId = -1, magic = 2 } = batch;
  const { baseOffset = records[0]!.offset, lastOffset = records.at(-1)!.offset } = batch;
  const baseTimestamp = records[0]?.at ?? 0;
  const body = Buffer.concat(
    records.map(({ offset, key = null, value = null, at = 0, headers = [] }) =>
      sized(
        Buffer.concat([
          Buffer.of(0),
          varint(BigInt(at - baseTimestamp)),
          varint(BigInt(offset - baseOffset)),
          sized(key === null ? null : Buffer.from(key)),
          sized(value),
          varint(BigInt(headers.length)),
          ...headers.flatMap(([name, content]) => [sized(Buffer.from(name)), sized(content)]),
        ]),
      ),
    ),
  );
  const head = Buffer.alloc(61);
  const content = attributes & 1 ? gzipSync(body) : body;
  head.writeBigInt64BE(BigInt(baseOffset), 0);
  head.writeInt32BE(49 + content.length, 8);
  head.writeInt8(magic, 16);
  head.writeInt16BE(attributes, 21);
  head.writeInt32BE(lastOffset - baseOffset, 23);
  head.writeBigInt64BE(BigInt(baseTimestamp), 27);
  head.writeBigInt64BE(BigInt(batch.maxTimestamp ?? 0), 35);
  head.writeBigInt64BE(BigInt(producerId), 43);
  head.writeInt32BE(records.length, 57);
  return Buffer.concat([head, content]);
}

/** The end of a transaction. */
export function markerBytes(offset: number, producerId: number, end: 'commit' | 'abort'): Buffer {
  const key = Buffer.of(0, 0, 0, end === 'abort' ? 0 : 1).toString('latin1');
  return batchBytes({ records: [{ offset, key }], producerId, attributes: 16 | 32 });
}

function sized(bytes: Buffer | null): Buffer {
  return bytes ? Buffer.concat([varint(BigInt(bytes.length)), bytes]) : varint(-1n);
}

function varint(value: bigint): Buffer {
  let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
  const bytes: number[] = [];
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  return Buffer.of(...bytes, Number(rest));
}

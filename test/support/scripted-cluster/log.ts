import Decoder from 'kafkajs/src/protocol/decoder.js';
import decodeBatch from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import type { DecodedBatch } from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import { batchBytes, markerBytes } from '../record-bytes.ts';
import { slowCrc32c } from '../slow-crc32c.ts';
import type { FetchedPartition, Identity, Isolation } from './protocol.ts';
import type { Transaction } from './transactions.ts';

const NONE = 0;
const OFFSET_OUT_OF_RANGE = 1;
const CORRUPT_MESSAGE = 2;
const OUT_OF_ORDER_SEQUENCE_NUMBER = 45;
const DUPLICATE_SEQUENCE_NUMBER = 46;
const INVALID_PRODUCER_EPOCH = 47;
/** So many batches of a producer are known again by their sequences. */
const REMEMBERED = 5;
const ALL_SEQUENCES = 2 ** 31;

export interface LoggedRecord {
  readonly offset: number;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

interface Written extends Identity {
  readonly offset: number;
  readonly count: number;
  readonly transaction: Transaction | undefined;
  /** None for the marker that ends a transaction. */
  readonly records: readonly LoggedRecord[];
  readonly bytes: Buffer;
}

interface Known {
  epoch: number;
  batches: { readonly first: number; readonly last: number; readonly offset: number }[];
}

/** A partition as its leader has it: what was appended, and what each producer has sent last. */
export class ScriptedLog {
  readonly #written: Written[] = [];
  readonly #producers = new Map<string, Known>();
  end = 0;

  /** @param transaction Whose outcome decides whether it can be read; undefined where there is none. */
  async append(sent: Buffer, transaction: Transaction | undefined) {
    const bytes = Buffer.from(sent);
    if (bytes.readUInt32BE(17) !== slowCrc32c(bytes.subarray(21))) return refused(CORRUPT_MESSAGE);
    const batch = await decodeBatch(new Decoder(bytes));
    const { producerId, producerEpoch: epoch, firstSequence: first, lastOffsetDelta } = batch;
    if (batch.inTransaction !== (transaction !== undefined)) return refused(CORRUPT_MESSAGE);
    const last = (first + lastOffsetDelta) % ALL_SEQUENCES;
    const known = this.#producers.get(producerId) ?? { epoch, batches: [] };
    if (epoch < known.epoch) return refused(INVALID_PRODUCER_EPOCH);
    if (epoch > known.epoch) Object.assign(known, { epoch, batches: [] });
    const same = known.batches.find((each) => each.first === first && each.last === last);
    if (same) return { errorCode: NONE, baseOffset: same.offset };
    const expected = ((known.batches.at(-1)?.last ?? -1) + 1) % ALL_SEQUENCES;
    if (first < expected) return refused(DUPLICATE_SEQUENCE_NUMBER);
    if (first > expected) return refused(OUT_OF_ORDER_SEQUENCE_NUMBER);
    const baseOffset = this.end;
    known.batches = [...known.batches, { first, last, offset: baseOffset }].slice(-REMEMBERED);
    this.#producers.set(producerId, known);
    bytes.writeBigInt64BE(BigInt(baseOffset), 0);
    const count = lastOffsetDelta + 1;
    const records = recordsOf(batch, baseOffset);
    const from = { offset: baseOffset, count, producerId, epoch };
    this.#written.push({ ...from, transaction, records, bytes });
    this.end += count;
    return { errorCode: NONE, baseOffset };
  }

  /** Appends a batch without a transaction, and without a check of sequences. */
  put(records: readonly { readonly key: string | null; readonly value: Buffer | null }[]): void {
    const offset = this.end;
    const bytes = batchBytes({
      records: records.map((each, n) => ({ ...each, offset: offset + n })),
    });
    const logged = records.map(({ key, value }, n) => ({
      ...{ offset: offset + n, key, headers: {} },
      value: value?.toString() ?? null,
    }));
    const of = {
      offset,
      count: records.length,
      producerId: '-1',
      epoch: -1,
      transaction: undefined,
    };
    this.#written.push({ ...of, records: logged, bytes });
    this.end += records.length;
  }

  /** The end of a transaction takes an offset, too; behind it older epochs are refused. */
  mark(transaction: Transaction, { producerId, epoch }: Identity): void {
    const end = transaction.outcome === 'abort' ? 'abort' : 'commit';
    const bytes = markerBytes(this.end, Number(producerId), end);
    const from = { offset: this.end, count: 1, producerId, epoch };
    this.#written.push({ ...from, transaction, records: [], bytes });
    this.end += 1;
    const known = this.#producers.get(producerId);
    if (!known) this.#producers.set(producerId, { epoch, batches: [] });
    else if (epoch > known.epoch) Object.assign(known, { epoch, batches: [] });
  }

  /** Records that a `read_committed` consumer reads. */
  committed(): LoggedRecord[] {
    return this.#written
      .filter(({ transaction }) => !transaction || transaction.outcome === 'commit')
      .flatMap(({ records }) => records);
  }

  /** Where the first transaction that is open begins; the end without one. */
  get stableEnd(): number {
    return (
      this.#written.find(({ transaction }) => transaction?.outcome === 'open')?.offset ?? this.end
    );
  }

  /** Batches from the one that has the offset on, at least one, and no more than `maxBytes` with the others. */
  fetch(
    offset: number,
    isolation: Isolation,
    maxBytes: number,
  ): Omit<FetchedPartition, 'partition'> {
    const { end, stableEnd } = this;
    const answer = { errorCode: NONE, end, stableEnd, aborted: [], records: Buffer.alloc(0) };
    if (offset > end) return { ...answer, errorCode: OFFSET_OUT_OF_RANGE };
    const limit = isolation === 'committed' ? stableEnd : end;
    const there = this.#written.filter(
      (each) => each.offset + each.count > offset && each.offset < limit,
    );
    let bytes = 0;
    const taken = there.filter((each, n) => (bytes += each.bytes.length) <= maxBytes || n === 0);
    const last = taken.at(-1);
    if (!last) return answer;
    const aborted = this.#written
      .filter((each) => each.records.length === 0 && each.transaction?.outcome === 'abort')
      .filter((marker) => marker.offset >= offset)
      .map(({ producerId, transaction }) => ({
        producerId,
        firstOffset: this.#written.find((each) => each.transaction === transaction)!.offset,
      }))
      .filter(({ firstOffset }) => firstOffset <= last.offset);
    return { ...answer, aborted, records: Buffer.concat(taken.map((each) => each.bytes)) };
  }

  /** Whatever became of it. */
  written(): LoggedRecord[] {
    return this.#written.flatMap(({ records }) => records);
  }
}

function refused(errorCode: number) {
  return { errorCode, baseOffset: -1 };
}

function recordsOf(batch: DecodedBatch, baseOffset: number): LoggedRecord[] {
  return batch.records.map(({ key, value, headers }, n) => ({
    offset: baseOffset + n,
    key: key?.toString() ?? null,
    value: value?.toString() ?? null,
    headers: Object.fromEntries(
      Object.entries(headers).map(([name, text]) => [name, String(text)]),
    ),
  }));
}

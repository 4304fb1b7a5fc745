import Decoder from 'kafkajs/src/protocol/decoder.js';
import decodeBatch from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import type { DecodedBatch } from 'kafkajs/src/protocol/recordBatch/v0/decoder.js';
import { slowCrc32c } from '../slow-crc32c.ts';
import type { Identity } from './protocol.ts';

const NONE = 0;
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
  readonly transaction: object | undefined;
  readonly records: readonly LoggedRecord[];
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
  async append(bytes: Buffer, transaction: object | undefined) {
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
    this.#written.push({ producerId, epoch, transaction, records: recordsOf(batch, baseOffset) });
    this.end += lastOffsetDelta + 1;
    return { errorCode: NONE, baseOffset };
  }

  /** The end of a transaction takes an offset, too; behind it older epochs are refused. */
  mark({ producerId, epoch }: Identity): void {
    this.end += 1;
    const known = this.#producers.get(producerId);
    if (!known) this.#producers.set(producerId, { epoch, batches: [] });
    else if (epoch > known.epoch) Object.assign(known, { epoch, batches: [] });
  }

  /** Of a transaction that ended so, or of none. */
  read(isCommitted: (transaction: object) => boolean): LoggedRecord[] {
    return this.#written
      .filter(({ transaction }) => !transaction || isCommitted(transaction))
      .flatMap(({ records }) => records);
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

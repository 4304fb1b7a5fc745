import type { Bodies, Identity } from './protocol.ts';

const NONE = 0;
const INVALID_PRODUCER_EPOCH = 47;
const INVALID_TXN_STATE = 48;
const INVALID_PRODUCER_ID_MAPPING = 49;
const PRODUCER_FENCED = 90;

/** One transaction; it stays what it has ended as. */
export interface Transaction {
  outcome: 'open' | 'commit' | 'abort';
  readonly partitions: Set<string>;
}

type Mark = (ended: Transaction, own: Identity) => void;

interface OfId {
  identity: Identity;
  /** The epoch before: who asks with it again has had no answer. */
  before: number;
  current: Transaction | undefined;
}

/** What the coordinator keeps of each transactional id, as Kafka's own does before version 2 of transactions. */
export class Transactions {
  readonly #ids = new Map<string, OfId>();
  readonly #mark: Mark;
  #next = 1_000;

  /** @param mark Writes the end of a transaction to its partitions. */
  constructor(mark: Mark) {
    this.#mark = mark;
  }

  init({ transactionalId, own }: Bodies['InitProducerId']): Identity & { errorCode: number } {
    const found = transactionalId === null ? undefined : this.#ids.get(transactionalId);
    if (!found) {
      const identity = { producerId: String(this.#next++), epoch: 0 };
      if (transactionalId !== null) {
        this.#ids.set(transactionalId, { identity, before: -1, current: undefined });
      }
      return { errorCode: NONE, ...identity };
    }
    const { identity } = found;
    if (own.producerId !== '-1') {
      const isRepeated = own.epoch === found.before && own.producerId === identity.producerId;
      if (isRepeated) return { errorCode: NONE, ...identity };
      if (own.producerId !== identity.producerId || own.epoch !== identity.epoch) {
        return { errorCode: PRODUCER_FENCED, producerId: '-1', epoch: -1 };
      }
    }
    found.before = own.producerId === '-1' ? -1 : identity.epoch;
    found.identity = { producerId: identity.producerId, epoch: identity.epoch + 1 };
    this.#end(found, 'abort');
    found.current = undefined;
    return { errorCode: NONE, ...found.identity };
  }

  add(
    { transactionalId, own }: { transactionalId: string; own: Identity },
    partitions: readonly string[],
  ): number {
    const found = this.#ids.get(transactionalId);
    const errorCode = check(found, own);
    if (!found || errorCode !== NONE) return errorCode;
    if (found.current?.outcome !== 'open')
      found.current = { outcome: 'open', partitions: new Set() };
    for (const partition of partitions) found.current.partitions.add(partition);
    return NONE;
  }

  end({ transactionalId, own, outcome }: Bodies['EndTxn']): number {
    const found = this.#ids.get(transactionalId);
    const errorCode = check(found, own);
    if (!found || errorCode !== NONE) return errorCode;
    if (found.current?.outcome === outcome) return NONE; // it was asked before
    if (found.current?.outcome !== 'open') return INVALID_TXN_STATE;
    this.#end(found, outcome);
    return NONE;
  }

  /** The open transaction that a partition was added to; its leader asks before it writes anything. */
  verify(transactionalId: string, own: Identity, partition: string): Transaction | number {
    const found = this.#ids.get(transactionalId);
    const errorCode = check(found, own);
    if (!found || errorCode !== NONE) return errorCode;
    const { current } = found;
    if (current?.outcome !== 'open' || !current.partitions.has(partition)) return INVALID_TXN_STATE;
    return current;
  }

  #end(of: OfId, outcome: 'commit' | 'abort'): void {
    if (of.current?.outcome !== 'open') return;
    of.current.outcome = outcome;
    this.#mark(of.current, of.identity);
  }
}

function check(found: OfId | undefined, own: Identity): number {
  if (found?.identity.producerId !== own.producerId) return INVALID_PRODUCER_ID_MAPPING;
  return found.identity.epoch === own.epoch ? NONE : INVALID_PRODUCER_EPOCH;
}

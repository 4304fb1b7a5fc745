import { BehaviorSubject } from 'rxjs';
import type { AccountConfig } from '../../../src/config/accounts.ts';
import type { AccountLog } from '../../../src/sinks/ledger/kafka-ledger.ts';
import { SimLedger } from '../../account/ledger/sim-ledger.ts';
import type { SimTime } from '../sim-time.ts';
import type { SimData } from './sim-data.ts';

/** A request: when it was written to its socket, or when it came to the server. */
export interface SimRequest {
  readonly at: number;
  readonly endpoint: string;
  readonly instance: string;
}

/** A declaration as an instance made it: times are true ones, ms. */
export interface SimDeclaration {
  readonly instance: string;
  readonly text: string;
  readonly sentAt: number;
  /** Infinity where no answer came. */
  ackedAt: number;
}

/** Somebody's serving of an account. */
export interface SimServing {
  readonly instance: string;
  readonly startedAt: number;
  /** Undefined until it is claimed. */
  claimedAt: number | undefined;
  log: AccountLog | undefined;
  endedAt: number;
}

/** One account: its API as the server counts, and its ledger. */
export class SimAccount {
  readonly config: AccountConfig;
  /** Whether its lists are asked for as often as they may. */
  readonly isBusy: boolean;
  readonly ledger: SimLedger;
  readonly sent: SimRequest[] = [];
  /** Its records; undefined where nobody looks at them. */
  readonly data: SimData | undefined;
  readonly #arrived: SimRequest[] = [];
  readonly declarations: SimDeclaration[] = [];
  readonly servings: SimServing[] = [];
  /** How many of its lists are read for the first time. */
  readonly snapshots$ = new BehaviorSubject(0);

  constructor(config: AccountConfig, isBusy: boolean, time: SimTime, data?: SimData) {
    this.data = data;
    this.config = config;
    this.isBusy = isBusy;
    this.ledger = new SimLedger(time);
  }

  get name(): string {
    return this.config.account;
  }

  /** What it costs, as the real code has it. */
  get weight(): number {
    return 1 + 0.5 * this.snapshots$.value;
  }

  arrive(request: SimRequest): void {
    this.#arrived.push(request);
  }

  /** All requests, as they came to the server. */
  get arrived(): readonly SimRequest[] {
    if (!this.data) return this.#arrived;
    return this.data.api.arrivals.map(({ at, what, client }) => ({
      ...{ at, instance: client.name },
      endpoint: what === 'list' ? 'orders' : 'login',
    }));
  }

  /** Who has claimed it, and still has it as far as Kafka knows. */
  owner(): SimServing | undefined {
    return this.servings.findLast(
      ({ log, endedAt }) => endedAt === Infinity && log !== undefined && this.ledger.isOf(log),
    );
  }
}

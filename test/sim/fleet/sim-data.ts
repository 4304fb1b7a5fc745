import type { Chance } from '../../support/chance.ts';
import { checkChains, checkTruth } from '../check-chains.ts';
import { checkStatuses } from '../check-statuses.ts';
import { chainsOf, imagesOf, isTruth } from '../published.ts';
import { DATES_AS_WRITTEN, SimApi } from '../sim-api.ts';
import type { TransactionalLog } from '../../../src/sinks/sink.ts';
import { brokerOf, SimBroker } from '../sim-broker.ts';
import { SimRegistry } from '../sim-registry.ts';
import type { SimTime } from '../sim-time.ts';
import { reach } from './sim-line.ts';
import type { SimLine } from './sim-line.ts';

const RECORDS = 40;

/** An account that has records: its list, and what is published of it. */
export class SimData {
  readonly api: SimApi;
  readonly broker = new SimBroker((topic) => (topic === 'sim.cursors' ? 1 : 3));
  readonly registry = new SimRegistry();
  readonly #logs = new Map<SimLine, TransactionalLog>();
  readonly #time: SimTime;
  readonly #published = imagesOf(this.broker, this.registry, 'sim.orders');

  constructor(quotaPerMinute: number, loginsPerMinute: number, chance: Chance, time: SimTime) {
    this.#time = time;
    const traits = {
      resource: 'orders',
      sort: chance.pick(['key-asc', 'updated-desc'] as const),
      ...{ resolutionMs: 1, lateMs: 0, stampSkewMs: 0, dateSkewMs: 0 },
      ...DATES_AS_WRITTEN,
      ...{ isBulk: false, boundsInclude: true, sendsDate: true, latencyMs: 100 },
      ...{ quotaPerMinute, loginsPerMinute },
    } as const;
    this.api = new SimApi(traits, chance, time, RECORDS);
  }

  /** Its Kafka as an instance sees it, which shares what it has read from one serving to the next. */
  logOf(line: SimLine): TransactionalLog {
    const step = (what: string) => reach(line, `task ${what}`);
    const now = () => this.#time.now();
    const log = this.#logs.get(line) ?? brokerOf(this.broker, { step, fate: () => 'done', now });
    this.#logs.set(line, log);
    return log;
  }

  /** Whether all that there is was published as it is. */
  isTrue(): boolean {
    return isTruth(this.#published(), this.api.list);
  }

  /**
   * Nothing made up, nothing twice, all in order; and, of an account that is to be run, nothing lost: as the simulation of one list
   * has it checked.
   */
  violations(isToBeRun: boolean): string[] {
    const chains = chainsOf(this.broker.read('sim.orders'), this.registry);
    return [
      ...checkChains(chains, this.api.list, undefined, false),
      ...(isToBeRun ? checkTruth(chains, this.api.list) : []),
      ...checkStatuses(chains, this.broker.read('sim.order-status-changes')),
    ];
  }
}

import { mergeMap, Observable, Subject } from 'rxjs';
import { permitGrants } from '../../../src/account/permits/permit-grants.ts';
import { CellarstreamError } from '../../../src/core/errors.ts';
import type { SignalBatch, SignalTopic } from '../../../src/sinks/signals/kafka-signals.ts';
import { parseSignal } from '../../../src/sinks/signals/signals.ts';
import type { PermitsRequest } from '../../../src/sinks/signals/signals.ts';
import type { Message } from '../../../src/sinks/sink.ts';
import type { Chance } from '../../support/chance.ts';
import type { SimTime } from '../../sim/sim-time.ts';
import type { Begun } from '../ledger/sim-client.ts';
import type { Ways } from '../ledger/sim-ledger.ts';

/** The topic of signals: who writes to it, and who follows it, each in their own time. */
export class SimSignals {
  readonly #time: SimTime;
  readonly #chance: Chance;
  readonly #messages: Message[] = [];
  readonly #added$ = new Subject<number>();

  constructor(time: SimTime, chance: Chance) {
    this.#time = time;
    this.#chance = chance;
  }

  of({ step, isCutOff }: Ways): SignalTopic {
    const cutOff = () => new CellarstreamError('KAFKA_UNREACHABLE', 'no answer from Kafka');
    return {
      name: 'wine.signals',
      ends: async () => {
        await step();
        if (isCutOff()) throw cutOff();
        return new Map([[0, BigInt(this.#messages.length)]]);
      },
      read: () => this.#follow(step),
      send: async (message) => {
        await step();
        if (isCutOff()) throw cutOff();
        this.#messages.push(message);
        this.#added$.next(this.#messages.length - 1);
        await step();
      },
      close: () => Promise.resolve(),
    };
  }

  /** A service gives permits from now on. */
  serve({ client, ledger, quota, scheduler, awake }: Begun): void {
    const requests$ = new Subject<PermitsRequest>();
    const step = async () => {
      await this.#time.sleep(1 + this.#chance.below(this.#chance.is(0.1) ? 1_500 : 40));
      await awake();
    };
    const topic = this.of({ step, isCutOff: () => client.isCutOff });
    const granting = requests$
      .pipe(
        permitGrants({
          ...{ topic, account: 'main', instance: client.name, quota, ledger, scheduler, hooks: {} },
          wallNow: () => this.#time.now(),
        }),
      )
      .subscribe();
    const following = this.#follow(step).subscribe(({ messages }) => {
      for (const message of messages) {
        const signal = parseSignal(message);
        if (signal.type === 'permits' && !client.isCutOff) requests$.next(signal);
      }
    });
    client.add(granting);
    client.add(following);
  }

  /** What comes from now on. */
  #follow(step: () => Promise<void>): Observable<SignalBatch> {
    return this.#added$.pipe(
      mergeMap(async (at) => {
        await step();
        const { key, value } = this.#messages[at]!;
        const message = { key: key === null ? null : Buffer.from(key), value, offset: String(at) };
        return { partition: 0, messages: [message], next: BigInt(at + 1) };
      }),
    );
  }
}

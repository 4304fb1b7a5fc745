import type { ApiName, KafkaRequest } from './kafka-frames.ts';
import type { Answer, Exchange, Fault } from './exchange.ts';

/** Which request a fault strikes. */
export interface Aim {
  readonly api: ApiName;
  /** Lets so many of those pass before. Default 0. */
  readonly skip?: number;
  /** Which of them count. Default all. */
  readonly where?: (request: KafkaRequest) => boolean;
}

export interface Strike {
  /** Resolves when the request has come. */
  readonly begun: Promise<void>;
  /** Resolves when the fault has done all that it does, with what the broker said, if it was asked. */
  readonly done: Promise<Answer | undefined>;
}

interface Armed {
  readonly aim: Aim;
  left: number;
  /** Strikes all that come, until it is taken away. */
  readonly lasts: boolean;
  readonly strike: Fault;
}

/** The faults that wait for requests, of one broker or of many, and how many requests there were. */
export class Aims {
  readonly #armed: Armed[] = [];
  readonly #counts = new Map<ApiName, number>();

  /** How many such requests have come. */
  count(api: ApiName): number {
    return this.#counts.get(api) ?? 0;
  }

  /** Arms a fault for one request to come; of several that fit, the one armed first strikes. */
  strike(aim: Aim, fault: Fault): Strike {
    let begin: () => void;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const done = new Promise<Answer | undefined>((resolve) => {
      const strike = async (exchange: Exchange) => {
        begin();
        let answer: Answer | undefined;
        await fault({ ...exchange, forward: async () => (answer = await exchange.forward()) });
        return answer;
      };
      const armed = { aim, left: aim.skip ?? 0, lasts: false };
      this.#armed.push({ ...armed, strike: (exchange) => resolve(strike(exchange)) });
    });
    return { begun, done };
  }

  /** Strikes every request that fits and that nothing armed before strikes, until what it returns is called. */
  afflict(aim: Aim, fault: Fault): () => void {
    const armed = { aim, left: aim.skip ?? 0, lasts: true, strike: fault };
    this.#armed.push(armed);
    return () => this.#disarm(armed);
  }

  /** Counts a request that has come. */
  note({ api }: KafkaRequest): void {
    if (api !== undefined) this.#counts.set(api, this.count(api) + 1);
  }

  /** What strikes this request, if anything does. */
  faultFor(request: KafkaRequest): Fault | undefined {
    const fits = this.#armed.filter(
      ({ aim }) => aim.api === request.api && (aim.where?.(request) ?? true),
    );
    const next = fits.find(({ left }) => left === 0);
    for (const armed of fits) if (armed.left > 0) armed.left -= 1;
    if (next && !next.lasts) this.#disarm(next);
    return next?.strike;
  }

  #disarm(armed: Armed): void {
    const at = this.#armed.indexOf(armed);
    if (at >= 0) this.#armed.splice(at, 1);
  }
}

import { correlationOf, errorCodeOf, FrameReader, readRequest, withPort } from './kafka-frames.ts';
import type { ApiName, KafkaRequest } from './kafka-frames.ts';
import { TcpProxy } from './tcp-proxy.ts';
import type { ProxiedConnection, Tap } from './tcp-proxy.ts';

/** One request on its way to the broker, in the hands of a {@link Fault}. */
export interface Exchange {
  readonly request: KafkaRequest;
  /** Gives the request to the broker; resolves with the answer, of which the client has nothing yet. */
  readonly forward: () => Promise<Answer>;
  /** Gives the client an answer; does nothing when its connection is gone. */
  readonly reply: (answer: Answer) => void;
  /** Keeps the connection to the broker until then, though the client closes its own. */
  readonly stay: (until: PromiseLike<unknown>) => void;
  /** Resets the connection that it came on. */
  readonly cut: () => void;
  /** Leaves all connections of the client in the dark: open, and dead. New ones are served. */
  readonly darken: () => void;
}

export interface Answer {
  readonly frame: Buffer;
  /** As {@link errorCodeOf} reads it; 0 is success. */
  readonly errorCode: number | undefined;
}

/** What becomes of one request. Faults are made of what an {@link Exchange} can do. */
export type Fault = (exchange: Exchange) => void | Promise<void>;

/** Nothing happens to it. */
export const pass: Fault = async ({ forward, reply }) => reply(await forward());

/** The broker does it, the client never hears of it: its connection is reset instead. */
export const loseAnswer: Fault = async ({ forward, cut }) => {
  await forward();
  cut();
};

/** The broker never gets it: the connection is reset. */
export const loseRequest: Fault = ({ cut }) => cut();

/** The broker does it, and all connections of the client are dead from then on without a sign. */
export const goDark: Fault = async ({ forward, darken }) => {
  await forward();
  darken();
};

/** Something to wait for; asked for when the request has come. */
export type Until = () => PromiseLike<unknown>;

/** The broker does it at once, and the client hears of it when that has happened. */
export const holdAnswer =
  (until: Until): Fault =>
  async ({ forward, reply }) => {
    const held = until();
    const answer = await forward();
    await held;
    reply(answer);
  };

/** The broker gets it when that has happened: perhaps long after the client has given it up. */
export const holdRequest =
  (until: Until): Fault =>
  async ({ forward, reply, stay }) => {
    const answer = Promise.resolve(until()).then(forward);
    stay(answer);
    reply(await answer);
  };

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
  readonly strike: Fault;
}

/**
 * A proxy that speaks Kafka's protocol well enough to let single requests fail. It stands for the
 * broker: in what that tells of its addresses there is the proxy's, so that clients who were given
 * the proxy's address never see another.
 */
export class KafkaProxy {
  readonly #tcp: TcpProxy;
  readonly #armed: Armed[] = [];
  readonly #counts = new Map<ApiName, number>();

  /** @param broker `host:port` of a cluster of one broker. */
  static async listen(broker: string): Promise<KafkaProxy> {
    const [host = '', port] = broker.split(':');
    const tap = (connection: ProxiedConnection) => proxy.#tap(connection);
    const tcp = await TcpProxy.listen({ target: { host, port: Number(port) }, tap });
    const proxy: KafkaProxy = new KafkaProxy(tcp);
    return proxy;
  }

  private constructor(tcp: TcpProxy) {
    this.#tcp = tcp;
  }

  /** `host:port`, as `KAFKA_BROKERS` lists it. */
  get address(): string {
    return this.#tcp.address;
  }

  /** The connections beneath. */
  get tcp(): TcpProxy {
    return this.#tcp;
  }

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
      this.#armed.push({
        aim,
        left: aim.skip ?? 0,
        strike: (exchange) => resolve(strike(exchange)),
      });
    });
    return { begun, done };
  }

  close(): Promise<void> {
    return this.#tcp.close();
  }

  #tap(connection: ProxiedConnection): Tap {
    const requests = new FrameReader();
    const answers = new FrameReader();
    const waiting = new Map<number, (frame: Buffer) => void>();

    const exchangeOf = (request: KafkaRequest): Exchange => ({
      request,
      forward: () =>
        new Promise((resolve) => {
          waiting.set(request.correlationId, (answer) => {
            const frame = withPort(request, answer, this.#tcp.port);
            resolve({ frame, errorCode: errorCodeOf(request, frame) });
          });
          connection.toTarget(request.frame);
        }),
      reply: ({ frame }) => connection.toClient(frame),
      stay: (until) => connection.stay(until),
      cut: () => connection.cut(),
      darken: () => this.#tcp.darken(),
    });
    return {
      fromClient: (chunk) => {
        for (const frame of requests.push(chunk)) {
          const request = readRequest(frame);
          void this.#faultFor(request)(exchangeOf(request));
        }
      },
      fromTarget: (chunk) => {
        for (const frame of answers.push(chunk)) {
          const correlationId = correlationOf(frame);
          waiting.get(correlationId)?.(frame);
          waiting.delete(correlationId);
        }
      },
    };
  }

  #faultFor(request: KafkaRequest): Fault {
    const { api } = request;
    if (api === undefined) return pass;
    this.#counts.set(api, this.count(api) + 1);
    const fits = this.#armed.filter(({ aim }) => aim.api === api && (aim.where?.(request) ?? true));
    const next = fits.find(({ left }) => left === 0);
    for (const armed of fits) if (armed.left > 0) armed.left -= 1;
    if (!next) return pass;
    this.#armed.splice(this.#armed.indexOf(next), 1);
    return next.strike;
  }
}

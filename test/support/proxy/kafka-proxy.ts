import { Aims } from './aims.ts';
import type { Aim, Strike } from './aims.ts';
import { pass } from './exchange.ts';
import type { Exchange, Fault } from './exchange.ts';
import { correlationOf, errorCodeOf, FrameReader, readRequest, withPorts } from './kafka-frames.ts';
import type { ApiName, KafkaRequest } from './kafka-frames.ts';
import { TcpProxy } from './tcp-proxy.ts';
import type { ProxiedConnection, Tap } from './tcp-proxy.ts';

export type { Aim, Strike } from './aims.ts';
export * from './exchange.ts';

/** What a proxy shares with those of the other brokers of its cluster. */
export interface KafkaProxyOptions {
  /** The port of the proxy that stands for a broker, by its `host:port`. Default always this one's. */
  readonly portFor?: (broker: string) => number;
  /** Aims at requests to any of the brokers. Default none. */
  readonly aims?: Aims;
  /** Leaves the connections of all proxies in the dark. Default this one's. */
  readonly darken?: () => void;
}

/**
 * A proxy that speaks Kafka's protocol well enough to let single requests fail. It stands for the
 * broker: in what that tells of its addresses there is the proxy's, so that clients who were given
 * the proxy's address never see another.
 */
export class KafkaProxy {
  readonly #tcp: TcpProxy;
  readonly #options: KafkaProxyOptions;
  readonly #aims = new Aims();

  /** @param broker Its `host:port`; that of a cluster of one broker, unless the options say more. */
  static async listen(broker: string, options: KafkaProxyOptions = {}): Promise<KafkaProxy> {
    const [host = '', port] = broker.split(':');
    const tap = (connection: ProxiedConnection) => proxy.#tap(connection);
    const tcp = await TcpProxy.listen({ target: { host, port: Number(port) }, tap });
    const proxy: KafkaProxy = new KafkaProxy(tcp, options);
    return proxy;
  }

  private constructor(tcp: TcpProxy, options: KafkaProxyOptions) {
    this.#tcp = tcp;
    this.#options = options;
  }

  /** `host:port`, as `KAFKA_BROKERS` lists it. */
  get address(): string {
    return this.#tcp.address;
  }

  /** The connections beneath. */
  get tcp(): TcpProxy {
    return this.#tcp;
  }

  /** How many such requests have come to this broker. */
  count(api: ApiName): number {
    return this.#aims.count(api);
  }

  /** As {@link Aims.strike}, at requests to this broker; before what is aimed at all of them. */
  strike(aim: Aim, fault: Fault): Strike {
    return this.#aims.strike(aim, fault);
  }

  /** As {@link Aims.afflict}, at requests to this broker. */
  afflict(aim: Aim, fault: Fault): () => void {
    return this.#aims.afflict(aim, fault);
  }

  close(): Promise<void> {
    return this.#tcp.close();
  }

  #tap(connection: ProxiedConnection): Tap {
    const requests = new FrameReader();
    const answers = new FrameReader();
    const waiting = new Map<number, (frame: Buffer) => void>();
    const { portFor = () => this.#tcp.port, darken = () => this.#tcp.darken() } = this.#options;

    const exchangeOf = (request: KafkaRequest): Exchange => ({
      request,
      forward: () =>
        new Promise((resolve) => {
          waiting.set(request.correlationId, (answer) => {
            const frame = withPorts(request, answer, portFor);
            resolve({ frame, errorCode: errorCodeOf(request, frame) });
          });
          connection.toTarget(request.frame);
        }),
      reply: ({ frame }) => connection.toClient(frame),
      stay: (until) => connection.stay(until),
      cut: () => connection.cut(),
      darken,
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
    const { aims } = this.#options;
    this.#aims.note(request);
    aims?.note(request);
    return this.#aims.faultFor(request) ?? aims?.faultFor(request) ?? pass;
  }
}

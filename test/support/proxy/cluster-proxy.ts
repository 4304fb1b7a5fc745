import { Aims } from './aims.ts';
import type { Aim, Strike } from './aims.ts';
import type { Fault } from './exchange.ts';
import type { ApiName } from './kafka-frames.ts';
import { KafkaProxy } from './kafka-proxy.ts';

/**
 * A proxy before each broker of a cluster. Each of them names the others in place of their brokers, so that a
 * client that was given the proxies' addresses never learns of the brokers behind.
 */
export class ClusterProxy {
  readonly #aims: Aims;
  /** In the order of the brokers. What is to happen to one broker alone is done to its proxy. */
  readonly proxies: readonly KafkaProxy[];

  /** @param brokers `host:port` of every broker, as the cluster advertises it. */
  static async listen(brokers: readonly string[]): Promise<ClusterProxy> {
    const aims = new Aims();
    const table = new Map<string, KafkaProxy>();
    const portFor = (broker: string): number => {
      const proxy = table.get(broker);
      if (!proxy)
        throw new Error(`no proxy stands for the broker ${broker}: a client must not learn of it`);
      return proxy.tcp.port;
    };
    const darken = () => table.forEach(({ tcp }) => tcp.darken());
    for (const broker of brokers)
      table.set(broker, await KafkaProxy.listen(broker, { portFor, aims, darken }));
    return new ClusterProxy(aims, [...table.values()]);
  }

  private constructor(aims: Aims, proxies: readonly KafkaProxy[]) {
    this.#aims = aims;
    this.proxies = proxies;
  }

  /** `host:port` of each proxy, as `KAFKA_BROKERS` lists them. */
  get addresses(): readonly string[] {
    return this.proxies.map(({ address }) => address);
  }

  /** How many such requests have come, to any broker. */
  count(api: ApiName): number {
    return this.#aims.count(api);
  }

  /** As {@link Aims.strike}, whichever broker the request goes to. */
  strike(aim: Aim, fault: Fault): Strike {
    return this.#aims.strike(aim, fault);
  }

  /** As {@link Aims.afflict}, whichever broker the requests go to. */
  afflict(aim: Aim, fault: Fault): () => void {
    return this.#aims.afflict(aim, fault);
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}

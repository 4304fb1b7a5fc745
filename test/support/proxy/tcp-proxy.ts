import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { freeLoopbackPorts } from '../../../src/devstack/loopback-ports.ts';

/** What is done with the bytes of a connection as they come. The usual thing is to pass them on. */
export interface Tap {
  readonly fromClient: (bytes: Buffer) => void;
  readonly fromTarget: (bytes: Buffer) => void;
}

export interface TcpProxyOptions {
  /** Where connections go to. */
  readonly target: { readonly host: string; readonly port: number };
  /** Makes the tap of a new connection. Default: passes everything on, as it is. */
  readonly tap?: (connection: ProxiedConnection) => Tap;
}

/** A client's connection, and its twin to the target. */
export class ProxiedConnection {
  readonly #client: Socket;
  readonly #target: Socket;
  #isDark = false;
  #staying: Promise<unknown> = Promise.resolve();
  #delayMs = 0;
  /** Resolves when both ends are closed. */
  readonly closed: Promise<void>;

  constructor(client: Socket, target: Socket, tap: TcpProxyOptions['tap']) {
    this.#client = client;
    this.#target = target;
    const { fromClient, fromTarget } = tap?.(this) ?? {
      fromClient: (bytes) => this.toTarget(bytes),
      fromTarget: (bytes) => this.toClient(bytes),
    };
    client.on('data', (bytes: Buffer) => this.#isDark || fromClient(bytes));
    target.on('data', (bytes: Buffer) => this.#isDark || fromTarget(bytes));
    this.#follow(client, target);
    this.#follow(target, client);
    this.closed = Promise.all([closeOf(client), closeOf(target)]).then(() => undefined);
  }

  get isOpen(): boolean {
    return !this.#client.destroyed && !this.#target.destroyed;
  }

  toTarget(bytes: Buffer): void {
    this.#send(bytes, this.#client, this.#target);
  }

  toClient(bytes: Buffer): void {
    this.#send(bytes, this.#target, this.#client);
  }

  /** Resets both ends (RST): whatever is under way is lost. */
  cut(): void {
    reset(this.#client);
    reset(this.#target);
  }

  /** Keeps either end until that has happened, though the other goes: what is held may still arrive. */
  stay(until: PromiseLike<unknown>): void {
    this.#staying = Promise.all([this.#staying, until]);
  }

  /** From now on nothing passes in either direction, and neither end is told. For ever. */
  darken(): void {
    this.#isDark = true;
  }

  /** What is sent from now on arrives so much later. Lowering it never reorders bytes. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  #send(bytes: Buffer, from: Socket, to: Socket): void {
    if (this.#delayMs > 0) {
      const pause = this.#delayMs;
      from.pause(); // the system's buffers bound what waits here, and keep the order
      setTimeout(() => {
        this.#write(bytes, from, to);
      }, pause);
    } else {
      this.#write(bytes, from, to);
    }
  }

  #write(bytes: Buffer, from: Socket, to: Socket): void {
    if (this.#isDark || !to.writable) return;
    if (to.write(bytes)) return void from.resume();
    from.pause();
    to.once('drain', () => from.resume());
  }

  /** One end's end is the other's, in the same manner. */
  #follow(one: Socket, other: Socket): void {
    const pass = (what: () => void) => void this.#staying.then(() => this.#isDark || what());
    one.on('error', () => pass(() => reset(other)));
    one.on('end', () => pass(() => other.end()));
    one.on('close', () => pass(() => other.destroySoon()));
  }
}

/**
 * A TCP proxy on the loopback that can do to connections what networks do to them: each of them, by
 * {@link connections}, or all.
 */
export class TcpProxy {
  readonly #options: TcpProxyOptions;
  readonly #open = new Set<ProxiedConnection>();
  #server: Server | undefined;
  #port = 0;
  #accepted = 0;
  #delayMs = 0;
  #isSilent = false;

  /** Listens on a free port. */
  static async listen(options: TcpProxyOptions): Promise<TcpProxy> {
    const proxy = new TcpProxy(options);
    await proxy.admit();
    return proxy;
  }

  private constructor(options: TcpProxyOptions) {
    this.#options = options;
  }

  get port(): number {
    return this.#port;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Connections that are open. */
  get connections(): readonly ProxiedConnection[] {
    return [...this.#open];
  }

  /** How many connections were accepted so far. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Refuses new connections until {@link admit}; those that are open stay. */
  refuse(): void {
    this.#server?.close();
    this.#server = undefined;
  }

  /** Accepts connections again, on the same port. */
  async admit(): Promise<void> {
    if (this.#server) return;
    const server = createServer({ pauseOnConnect: true }, (client) => this.#accept(client));
    this.#server = server;
    // A low one: a client that is refused again and again must not come to call from that very port.
    this.#port ||= (await freeLoopbackPorts(1))[0]!;
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
  }

  /** Resets all connections that are open. */
  cut(): void {
    for (const connection of this.#open) connection.cut();
  }

  /** Leaves all connections that are open in the dark; see {@link ProxiedConnection.darken}. */
  darken(): void {
    for (const connection of this.#open) connection.darken();
  }

  /** As {@link darken}, and new connections are accepted and get no answer either, until {@link answer}. */
  fallSilent(): void {
    this.#isSilent = true;
    this.darken();
  }

  /** New connections are served again. Those that were dark stay so. */
  answer(): void {
    this.#isSilent = false;
  }

  /** Delays all connections, new ones too; 0 ends it. */
  delay(ms: number): void {
    this.#delayMs = ms;
    for (const connection of this.#open) connection.delay(ms);
  }

  /** Stops listening and resets all connections; resolves when they are closed. */
  async close(): Promise<void> {
    this.refuse();
    const closed = this.connections.map((connection) => connection.closed);
    this.cut();
    await Promise.all(closed);
  }

  #accept(client: Socket): void {
    this.#accepted += 1;
    const { target, tap } = this.#options;
    const connection = new ProxiedConnection(client, connect(target), tap);
    connection.delay(this.#delayMs);
    if (this.#isSilent) connection.darken();
    this.#open.add(connection);
    void connection.closed.then(() => this.#open.delete(connection));
    client.resume();
  }
}

/** One that is being closed can't be reset any more: Node would never say that it is closed. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

async function closeOf(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise<void>((closed) => socket.once('close', () => closed()));
}

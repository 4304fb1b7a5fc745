import { Agent, createServer, request as ask } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

/** An answer that reached the socket whole. */
export interface Heard {
  /** As it was asked for, query included. */
  readonly path: string;
  readonly status: number;
  readonly body: Buffer;
  /** From the arrival of the request to the last byte of the answer: ms since the epoch. */
  readonly begin: number;
  readonly end: number;
}

/**
 * Stands between the service and the API: hands everything on, hears what is answered, and can
 * disappear or reset what is under way.
 */
export class ApiTap {
  readonly #target: URL;
  readonly #onHeard: (heard: Heard) => void;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;

  static async start(target: string, onHeard: (heard: Heard) => void): Promise<ApiTap> {
    const tap = new ApiTap(target, onHeard);
    await tap.up();
    return tap;
  }

  private constructor(target: string, onHeard: (heard: Heard) => void) {
    this.#target = new URL(target);
    this.#onHeard = onHeard;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** Listens, always on the same port. */
  async up(): Promise<void> {
    if (this.#server) return;
    const server = createServer((request, response) => this.#forward(request, response));
    server.keepAliveTimeout = 65_000;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Nobody listens, and what was under way is reset. */
  async down(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    this.#server = undefined;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    this.reset();
    await closed;
  }

  /** Resets every connection, in whatever it is doing. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    await this.down();
    this.#agent.destroy();
  }

  #forward(request: IncomingMessage, response: ServerResponse): void {
    const begin = Date.now();
    const { hostname, port } = this.#target;
    const path = request.url ?? '/';
    const upstream = ask({
      ...{ hostname, port, path, agent: this.#agent },
      method: request.method,
      headers: request.headers,
    });
    const giveUp = () => void request.socket.destroy();
    upstream.on('error', giveUp);
    request.pipe(upstream);
    upstream.on('response', (answer) => {
      const status = answer.statusCode ?? 0;
      const parts: Buffer[] = [];
      response.writeHead(status, answer.rawHeaders);
      answer.on('data', (part: Buffer) => parts.push(part));
      answer.on('error', giveUp); // cut off: so is what goes on to the service
      answer.pipe(response);
      response.on('finish', () =>
        this.#onHeard({ path, status, body: Buffer.concat(parts), begin, end: Date.now() }),
      );
    });
    response.on('close', () => upstream.destroy());
  }
}

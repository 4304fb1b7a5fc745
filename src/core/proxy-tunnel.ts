import type { Socket } from 'node:net';
import type { buildConnector } from 'undici';
import { codeOf } from './network-error.ts';
import { portOf } from './proxies.ts';
import type { ChosenProxy } from './proxies.ts';

/** The proxy did not open a connection to a server: it can't be reached, or it refused. */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  /** Status of the proxy's answer; undefined without one. */
  readonly status: number | undefined;
  /** Whether the proxy took the connection, and closed it before the first byte of an answer. */
  readonly isUnanswered: boolean;

  constructor(
    { server, setting }: ChosenProxy,
    reason: string,
    options: {
      readonly status?: number;
      readonly isUnanswered?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(`the proxy ${server.origin} of ${setting} ${reason}`, { cause: options.cause });
    this.status = options.status;
    this.isUnanswered = options.isUnanswered ?? false;
  }
}

export interface TunnelOptions {
  readonly proxy: ChosenProxy;
  /** The server behind the proxy. */
  readonly target: buildConnector.Options;
  /** Connects to the proxy itself. */
  readonly toProxy: buildConnector.connector;
  /** Longest wait for the answer to CONNECT, in ms. */
  readonly timeoutMs: number;
}

/** Bounds the head of the answer to CONNECT. A smaller limit might refuse a proxy that sends many headers. */
const MAX_HEAD_BYTES = 16_384;

/** Opens a tunnel to a server with CONNECT (RFC 9110, 9.3.6), and calls back with its socket or a {@link ProxyError}. */
export function openTunnel(options: TunnelOptions, callback: buildConnector.Callback): void {
  const { proxy, target, toProxy } = options;
  const { protocol, hostname, port } = new URL(proxy.server.origin);
  toProxy({ protocol, hostname, host: hostname, port }, (error, socket) => {
    if (socket) return connectThrough(socket, authorityOf(target), options, callback);
    const reason = `can't be reached (${codeOf(error) ?? error?.message}): check ${proxy.setting}`;
    callback(new ProxyError(proxy, reason, { cause: error }), null);
  });
}

function connectThrough(
  socket: Socket,
  authority: string,
  { proxy, timeoutMs }: TunnelOptions,
  callback: buildConnector.Callback,
): void {
  let head = Buffer.alloc(0);
  const leave = (): void => {
    clearTimeout(timer);
    socket.off('readable', onReadable).off('error', onClose).off('close', onEnd);
  };
  const failWith = (error: ProxyError): void => {
    leave();
    socket.on('error', () => undefined).destroy(); // whatever still happens to it concerns no request
    callback(error, null);
  };
  const fail = (reason: string): void => failWith(new ProxyError(proxy, reason));
  const onClose = (cause?: Error): void =>
    failWith(
      new ProxyError(proxy, 'closed the connection', { isUnanswered: head.length === 0, cause }),
    );
  const onEnd = (): void => onClose();
  const onReadable = (): void => {
    for (let piece = socket.read() as Buffer | null; piece; piece = socket.read() as Buffer | null)
      head = Buffer.concat([head, piece]);
    const end = head.indexOf('\r\n\r\n');
    if (end < 0 && head.length < MAX_HEAD_BYTES) return;
    const [, status] = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1')) ?? [];
    if (status === undefined || end < 0) return fail('does not speak HTTP at that port');
    if (!status.startsWith('2')) {
      return failWith(refused(proxy, Number(status), `CONNECT ${authority}`));
    }
    if (end + 4 < head.length) return fail(`sent more than an answer to CONNECT ${authority}`);
    leave();
    callback(null, socket);
  };
  const timer = setTimeout(
    () => fail(`did not answer CONNECT ${authority} in ${timeoutMs / 1_000} s`),
    timeoutMs,
  );
  socket.on('readable', onReadable).on('error', onClose).on('close', onEnd);
  const { authorization } = proxy.server;
  socket.write(
    `CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n` +
      (authorization ? `proxy-authorization: ${authorization.reveal()}\r\n` : '') +
      '\r\n',
  );
}

/** The host and port of a server, as a proxy is asked for it. */
function authorityOf({ hostname, protocol, port }: buildConnector.Options): string {
  const host = hostname.includes(':') ? `[${hostname}]` : hostname;
  return `${host}:${portOf({ protocol, port })}`;
}

/** The error for a proxy's answer that refuses a request. */
export function refused(proxy: ChosenProxy, status: number, request: string): ProxyError {
  const { server, setting } = proxy;
  const withUser = `${setting} must be http://USER:PASSWORD@host:port`;
  const advice =
    status !== 407
      ? status >= 500
        ? "it can't reach that address"
        : 'its rules must allow it, or NO_PROXY must name the host'
      : server.authorization
        ? `it does not accept the user and password in ${setting}`
        : `it requires a user and a password: ${withUser}`;
  return new ProxyError(proxy, `answered ${status} to ${request}: ${advice}`, { status });
}

// Connects through HTTP proxies, with CONNECT tunnels or with absolute URLs in requests.

import type { Socket } from 'node:net';
import type { Agent, buildConnector, Dispatcher } from 'undici';
import { codeOf } from './errors.ts';
import { forwardingHandler } from './interceptors.ts';
import { portOf, proxyFor } from './proxies.ts';
import type { ChosenProxy, Proxies } from './proxies.ts';

interface ProxiedOptions {
  readonly proxies: Proxies;
  /** Connects to a server directly, or sets up TLS in a tunnel if the tunnel's socket is passed as `httpSocket`. */
  readonly direct: buildConnector.connector;
  readonly toProxy: buildConnector.connector;
  readonly timeoutMs: number;
  readonly agentWith: (connect: buildConnector.connector) => Agent;
}

/**
 * Creates a dispatcher that connects through the configured proxies, or directly to servers for which {@link proxyFor} chooses none.
 *
 * - Each server is reached by a tunnel (CONNECT), even `http://` servers, because a proxy's cache can't respond to requests in a tunnel.
 * - If the proxy refuses the tunnel to an `http://` server, requests to that server are sent with absolute URLs instead.
 *
 * undici's `EnvHttpProxyAgent` (7.30) is not used: it has no such fallback, and its CONNECT has no time limit.
 */
export function proxiedConnections(options: ProxiedOptions): Dispatcher {
  const { proxies, direct, toProxy, timeoutMs, agentWith } = options;
  const proxyOrigins = [proxies.http?.origin, proxies.https?.origin];
  const forwarded = new Set<string>(); // origins whose tunnel was refused
  const reached = new Set<string>(); // origins in `forwarded` whose server has responded

  const agent = agentWith((target, callback) => {
    const { protocol, host } = target;
    if (proxyOrigins.includes(`${protocol}//${host}`)) {
      // undici takes the server name from the `host` header, which names the server behind the proxy.
      return toProxy({ ...target, servername: '' }, callback);
    }
    const proxy = proxyFor(target, proxies);
    if (!proxy) return direct(target, callback);
    openTunnel({ proxy, target, toProxy, timeoutMs }, (error, socket) => {
      if (error) callback(error, null);
      else if (protocol === 'https:') direct({ ...target, httpSocket: socket }, callback);
      else callback(null, socket);
    });
  });
  return agent.compose((dispatch) => (request, handler) => {
    const target = new URL(String(request.origin));
    const proxy = target.protocol === 'http:' ? proxyFor(target, proxies) : undefined;
    if (!proxy) return dispatch(request, handler);
    const { origin } = target;
    const forward = (): boolean =>
      dispatch(
        absolute(request, target, proxy),
        rejectingProxyResponses(handler, proxy, origin, reached),
      );
    if (forwarded.has(origin)) return forward();
    const passing = forwardingHandler(handler);
    return dispatch(request, {
      ...passing,
      onResponseError: (controller, error) => {
        if (!isTunnelRefused(error)) return passing.onResponseError(controller, error);
        forwarded.add(origin);
        forward();
      },
    });
  });
}

/** Whether the proxy seems not to allow or support CONNECT. The request may then succeed with an absolute URL. */
function isTunnelRefused(error: Error): boolean {
  if (!(error instanceof ProxyError)) return false;
  // Node's HTTP server closes the connection if it has no listener for CONNECT.
  return error.isClosedWithoutResponse || [400, 403, 404, 405, 501].includes(error.status ?? 0);
}

/** Returns the request in the form in which a proxy receives it without a tunnel: with the absolute URL in its first line. */
function absolute(
  request: Dispatcher.DispatchOptions,
  target: URL,
  { server }: ChosenProxy,
): Dispatcher.DispatchOptions {
  return {
    ...request,
    origin: server.origin,
    path: target.origin + request.path,
    headers: {
      ...(request.headers as Record<string, string>),
      host: target.host,
      ...(server.authorization && { 'proxy-authorization': server.authorization.reveal() }),
    },
  };
}

/**
 * Wraps the handler of a request that is sent to the proxy with an absolute URL. The request fails with a {@link ProxyError} if the
 * response seems to be the proxy's own: a 407, or a 403 that is not JSON and precedes any response of the server.
 *
 * @param origin Origin of the server.
 * @param reached Origins of servers that have responded, with a status below 500. The handler adds `origin` to this set.
 */
function rejectingProxyResponses(
  handler: Dispatcher.DispatchHandler,
  proxy: ChosenProxy,
  origin: string,
  reached: Set<string>,
): Dispatcher.DispatchHandler {
  const passing = forwardingHandler(handler);
  return {
    ...passing,
    onResponseStart: (controller, status, headers, message) => {
      if (status === 407) return controller.abort(refused(proxy, status, 'the request'));
      const isJson = /json/i.test(String(headers['content-type']));
      if (status === 403 && !isJson && !reached.has(origin)) {
        return controller.abort(refused(proxy, status, `a request for ${origin}`));
      }
      // A proxy itself may respond with 5xx.
      if (status < 500) reached.add(origin);
      passing.onResponseStart(controller, status, headers, message);
    },
  };
}

/**
 * Error of a request that failed at the proxy: the proxy can't be reached, does not respond as an HTTP proxy, or refused the tunnel or the
 * request.
 */
export class ProxyError extends Error {
  override readonly name = 'ProxyError';
  readonly status: number | undefined;
  /** Whether the proxy closed the connection without sending any part of a response. */
  readonly isClosedWithoutResponse: boolean;

  constructor(
    { server, setting }: ChosenProxy,
    reason: string,
    details: Partial<Pick<ProxyError, 'status' | 'isClosedWithoutResponse' | 'cause'>> = {},
  ) {
    super(`the proxy ${server.origin} of ${setting} ${reason}`, { cause: details.cause });
    this.status = details.status;
    this.isClosedWithoutResponse = details.isClosedWithoutResponse ?? false;
  }
}

interface TunnelOptions {
  readonly proxy: ChosenProxy;
  readonly target: buildConnector.Options;
  readonly toProxy: buildConnector.connector;
  /** Maximum time to wait for the response to CONNECT, in ms. */
  readonly timeoutMs: number;
}

/** Maximum size of the status line and headers in the response to CONNECT, in bytes. */
const MAX_HEAD_BYTES = 16_384;

/** Opens a tunnel to a server with CONNECT (RFC 9110, 9.3.6). Calls `callback` with the tunnel's socket, or with a {@link ProxyError}. */
function openTunnel(options: TunnelOptions, callback: buildConnector.Callback): void {
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
    socket.on('error', () => undefined).destroy(); // later errors of the socket concern no request
    callback(error, null);
  };
  const fail = (reason: string): void => failWith(new ProxyError(proxy, reason));
  const onClose = (cause?: Error): void => {
    const isClosedWithoutResponse = head.length === 0;
    failWith(new ProxyError(proxy, 'closed the connection', { isClosedWithoutResponse, cause }));
  };
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
    if (end + 4 < head.length)
      return fail(
        `sent data after its response to CONNECT ${authority}, before this client sent any`,
      );
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

/** Returns the host and port of a server in the form that CONNECT requires. */
function authorityOf({ hostname, protocol, port }: buildConnector.Options): string {
  const host = hostname.includes(':') ? `[${hostname}]` : hostname;
  return `${host}:${portOf({ protocol, port })}`;
}

function refused(proxy: ChosenProxy, status: number, request: string): ProxyError {
  const reason = `answered ${status} to ${request}: ${refusalAdvice(proxy, status)}`;
  return new ProxyError(proxy, reason, { status });
}

function refusalAdvice({ server, setting }: ChosenProxy, status: number): string {
  if (status >= 500) return "it can't reach that address";
  if (status !== 407)
    return 'the rules of the proxy must allow connections to this host, or NO_PROXY must name the host';
  if (server.authorization) return `it does not accept the user and password in ${setting}`;
  return `it requires a user and a password: ${setting} must be http://USER:PASSWORD@host:port`;
}

import type { Agent, buildConnector, Dispatcher } from 'undici';
import { passingHandler } from './passing-handler.ts';
import { proxyFor } from './proxies.ts';
import type { ChosenProxy, Proxies } from './proxies.ts';
import { openTunnel, ProxyError, refused } from './proxy-tunnel.ts';

export interface ProxiedOptions {
  readonly proxies: Proxies;
  /** Connects to a server directly, or sets up TLS with it inside a tunnel. */
  readonly direct: buildConnector.connector;
  /** Connects to a proxy. */
  readonly toProxy: buildConnector.connector;
  /** Longest wait for a proxy's answer to CONNECT, in ms. */
  readonly timeoutMs: number;
  /** Makes the agent that uses a connector. */
  readonly agentWith: (connect: buildConnector.connector) => Agent;
}

/**
 * Connections through the proxies of the environment, direct where `NO_PROXY` says so. Every server is reached by a tunnel, those of
 * `http://` addresses as well: inside a tunnel no cache of a proxy answers in the server's place. Many proxies allow tunnels to
 * TLS ports only (Squid's default). A plain server whose tunnel is refused is asked through the proxy by absolute addresses, this
 * request and all later ones.
 *
 * undici's `EnvHttpProxyAgent` (7.30) does either but not one after the other, reads `process.env`, has no time limit for CONNECT, and
 * reports a refusal as an aborted request.
 */
export function proxiedConnections(options: ProxiedOptions): Dispatcher {
  const { proxies, direct, toProxy, timeoutMs, agentWith } = options;
  const proxyOrigins = [proxies.http?.origin, proxies.https?.origin];
  const forwarded = new Set<string>(); // origins whose tunnel was refused
  const reached = new Set<string>(); // forwarded origins whose server has answered

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
        passingAnswers(handler, { proxy, origin, reached }),
      );
    if (forwarded.has(origin)) return forward();
    const passing = passingHandler(handler);
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

/**
 * Whether the proxy can be asked in another way: it opens no tunnel there, or does not know the method. A server of Node without a
 * listener for CONNECT closes the connection in place of an answer.
 */
function isTunnelRefused(error: Error): boolean {
  if (!(error instanceof ProxyError)) return false;
  return error.isUnanswered || [400, 403, 404, 405, 501].includes(error.status ?? 0);
}

/** The request as a proxy takes it without a tunnel: sent to the proxy, with the whole address in its first line. */
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

interface Forwarded {
  readonly proxy: ChosenProxy;
  /** Origin of the server. */
  readonly origin: string;
  /** Origins whose server has answered through the proxy. */
  readonly reached: Set<string>;
}

/**
 * Turns the proxy's own answers into a {@link ProxyError}: a 407, and a 403 without JSON before the server's first other answer. The proxy has
 * refused a tunnel to that server already, so its rules are the likely cause.
 */
function passingAnswers(
  handler: Dispatcher.DispatchHandler,
  { proxy, origin, reached }: Forwarded,
): Dispatcher.DispatchHandler {
  const passing = passingHandler(handler);
  return {
    ...passing,
    onResponseStart: (controller, status, headers, message) => {
      if (status === 407) return controller.abort(refused(proxy, status, 'the request'));
      const isJson = /json/i.test(String(headers['content-type']));
      if (status === 403 && !isJson && !reached.has(origin)) {
        return controller.abort(refused(proxy, status, `a request for ${origin}`));
      }
      if (status < 500) reached.add(origin);
      passing.onResponseStart(controller, status, headers, message);
    },
  };
}

import { BlockList, isIP } from 'node:net';
import { basicAuth } from './http-text.ts';
import { Secret } from './secret.ts';

/** An HTTP proxy. */
export interface ProxyServer {
  /** Its address without credentials, such as `http://proxy.example:3128`; fit for a log line. */
  readonly origin: string;
  /** Value of the `proxy-authorization` header. Default: none is sent. */
  readonly authorization?: Secret | undefined;
}

/** HTTP proxies by the protocol of the server behind them, as `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` name them. */
export interface Proxies {
  /** For `http://` addresses, and for `https://` ones when `https` is not set. */
  readonly http?: ProxyServer | undefined;
  /** For `https://` addresses. */
  readonly https?: ProxyServer | undefined;
  /** Hosts that are reached directly, in the syntax of `NO_PROXY`. */
  readonly noProxy?: string | undefined;
}

/** The server that a connection is made to. */
interface ProxyTarget {
  /** `http:` or `https:`. */
  readonly protocol: string;
  /** A name or an IP address, an IPv6 one with or without brackets. */
  readonly hostname: string;
  /** Empty for the protocol's default port. */
  readonly port: string;
}

/** The proxy of a connection, and the setting that it was taken from. */
export interface ChosenProxy {
  readonly server: ProxyServer;
  readonly setting: 'HTTP_PROXY' | 'HTTPS_PROXY';
}

/** Reads the text of `HTTP_PROXY` or `HTTPS_PROXY`; undefined when it is no address of an HTTP proxy. */
export function readProxy(text: string): ProxyServer | undefined {
  const trimmed = text.trim();
  const address = /^[a-z][a-z\d+.-]*:\/\//i.test(trimmed) ? trimmed : `http://${trimmed}`;
  if (!URL.canParse(address)) return undefined;
  const { protocol, origin, pathname, search, hash, username, password } = new URL(address);
  if (protocol !== 'http:' && protocol !== 'https:') return undefined;
  if (pathname !== '/' || search !== '' || hash !== '') return undefined;
  if (username === '' && password === '') return { origin };
  try {
    const basic = basicAuth(decodeURIComponent(username), decodeURIComponent(password));
    return { origin, authorization: new Secret(basic) };
  } catch {
    return undefined; // a percent sign that is not part of an escape
  }
}

/** The proxy through which a server is reached; undefined for a direct connection. */
export function proxyFor(target: ProxyTarget, proxies: Proxies): ChosenProxy | undefined {
  if (isDirect(target, proxies.noProxy ?? '')) return undefined;
  const { http, https } = proxies;
  if (target.protocol === 'https:' && https) return { server: https, setting: 'HTTPS_PROXY' };
  return http && { server: http, setting: 'HTTP_PROXY' };
}

/** Port of an address, also where it is left out. */
export function portOf({ protocol, port }: Pick<ProxyTarget, 'protocol' | 'port'>): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

/**
 * Whether `NO_PROXY` excludes a server: items are separated by commas or spaces. An item is `*` (every server), a host with all its
 * subdomains (`example.com`, `.example.com` and `*.example.com` are the same), an IP address or a range of them (`10.0.0.0/8`);
 * `host:port` excludes that port alone.
 */
export function isDirect(target: ProxyTarget, noProxy: string): boolean {
  const host = plainHost(target.hostname);
  const port = portOf(target);
  return noProxy
    .split(/[,\s]+/)
    .filter((item) => item !== '')
    .some((item) => item === '*' || matches(item, host, port));
}

function matches(item: string, host: string, port: number): boolean {
  const [, named = item, itsPort] = /^([^:]+|\[.*\]):(\d+)$/.exec(item) ?? [];
  if (itsPort !== undefined && Number(itsPort) !== port) return false;
  const [, network, bits] = /^([\d.]+|[\da-f:.]+)\/(\d+)$/i.exec(named) ?? [];
  if (network !== undefined) return isIn(host, network, Number(bits));
  const wanted = plainHost(named.replace(/^\*?\./, ''));
  return host === wanted || (isIP(host) === 0 && host.endsWith(`.${wanted}`));
}

function isIn(host: string, network: string, bits: number): boolean {
  const version = isIP(network);
  if (isIP(host) !== version || version === 0 || bits > (version === 4 ? 32 : 128)) return false;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(network, bits, family);
  return range.check(host, family);
}

/** In lower case, without the brackets of an IPv6 address and without a dot at its end. */
function plainHost(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
}

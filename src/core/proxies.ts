// Parses the settings HTTP_PROXY, HTTPS_PROXY and NO_PROXY, and chooses the proxy of a connection.

import { BlockList, isIP } from 'node:net';
import { basicAuth } from './http-text.ts';
import { Secret } from './secret.ts';

/** An HTTP proxy. */
export interface ProxyServer {
  /** Address of the proxy without credentials, such as `http://proxy.example:3128`; it may be logged. */
  readonly origin: string;
  /** Value of the `proxy-authorization` header. Default: none is sent. */
  readonly authorization?: Secret | undefined;
}

/** The settings `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. */
export interface Proxies {
  /** Proxy for `http://` addresses, and for `https://` addresses if `https` is not set. */
  readonly http?: ProxyServer | undefined;
  /** Proxy for `https://` addresses. */
  readonly https?: ProxyServer | undefined;
  /** Hosts that are reached directly, in the syntax of `NO_PROXY`. */
  readonly noProxy?: string | undefined;
}

interface ProxyTarget {
  readonly protocol: string;
  /** Host name or IP address, IPv6 with or without brackets. */
  readonly hostname: string;
  /** Empty for the protocol's default port. */
  readonly port: string;
}

/** A proxy, and the setting that names it. */
export interface ChosenProxy {
  readonly server: ProxyServer;
  readonly setting: 'HTTP_PROXY' | 'HTTPS_PROXY';
}

/** Parses the value of `HTTP_PROXY` or `HTTPS_PROXY`; undefined if it is not the address of an HTTP proxy. */
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

/** Chooses the proxy for a connection to a server; undefined for a direct connection. */
export function proxyFor(target: ProxyTarget, proxies: Proxies): ChosenProxy | undefined {
  if (isDirect(target, proxies.noProxy ?? '')) return undefined;
  const { http, https } = proxies;
  if (target.protocol === 'https:' && https) return { server: https, setting: 'HTTPS_PROXY' };
  return http && { server: http, setting: 'HTTP_PROXY' };
}

export function portOf({ protocol, port }: Pick<ProxyTarget, 'protocol' | 'port'>): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

/**
 * Whether `NO_PROXY` excludes a server from the use of proxies. Its items are separated by commas or spaces. An item is `*` (every server),
 * a host with all its subdomains (`example.com`, `.example.com` and `*.example.com` are the same), an IP address, or a range of addresses
 * (`10.0.0.0/8`); `host:port` excludes only that port.
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
  if (network !== undefined) return isInNetwork(host, network, Number(bits));
  const wanted = plainHost(named.replace(/^\*?\./, ''));
  return host === wanted || (isIP(host) === 0 && host.endsWith(`.${wanted}`));
}

function isInNetwork(host: string, network: string, bits: number): boolean {
  const version = isIP(network);
  if (isIP(host) !== version || version === 0 || bits > (version === 4 ? 32 : 128)) return false;
  const family = version === 4 ? 'ipv4' : 'ipv6';
  const range = new BlockList();
  range.addSubnet(network, bits, family);
  return range.check(host, family);
}

/** Host name in lower case, without brackets of IPv6 and a trailing dot. */
function plainHost(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
}

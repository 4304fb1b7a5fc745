// Parses the settings HTTP_PROXY, HTTPS_PROXY and NO_PROXY, and chooses the proxy of a connection.

import { BlockList, isIP } from 'node:net';
import { basicAuth } from './http-text.ts';
import { Secret } from './secret.ts';

/** An HTTP proxy and its credentials. */
export interface ProxyServer {
  /** Address of the proxy without credentials, such as `http://proxy.example:3128`; it may be logged. */
  readonly origin: string;
  /** Value of the `proxy-authorization` header. Default: the header is not sent. */
  readonly authorization?: Secret | undefined;
}

/** Values of the settings `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`. */
export interface Proxies {
  /** Proxy for `http://` addresses. If `https` is not set, it is also used for `https://` addresses. */
  readonly http?: ProxyServer | undefined;
  /** Proxy for `https://` addresses. */
  readonly https?: ProxyServer | undefined;
  /** Hosts that are reached without a proxy, in the syntax of `NO_PROXY`. */
  readonly noProxy?: string | undefined;
}

interface ProxyTarget {
  readonly protocol: string;
  /** Host name or IP address. An IPv6 address may be in brackets. */
  readonly hostname: string;
  /** Port of the server. Empty for the protocol's default port. */
  readonly port: string;
}

/** A proxy, and the name of the setting that configures it. */
export interface ChosenProxy {
  readonly server: ProxyServer;
  readonly setting: 'HTTP_PROXY' | 'HTTPS_PROXY';
}

/** Parses the value of `HTTP_PROXY` or `HTTPS_PROXY`. Returns undefined if it is not the address of an HTTP proxy. */
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

/** Chooses the proxy for a connection to a server. Returns undefined if the connection is direct. */
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
 * Whether `NO_PROXY` excludes a server from the use of proxies. The items of `noProxy` are separated by commas or spaces:
 *
 * - `*`: every server;
 * - a host, including all its subdomains: `example.com`, `.example.com` and `*.example.com` mean the same;
 * - an IP address;
 * - a range of IP addresses, such as `10.0.0.0/8`;
 * - one of these, followed by `:` and a port: excludes only that port. IPv6 addresses are then written in brackets.
 */
export function isDirect(target: ProxyTarget, noProxy: string): boolean {
  const host = plainHost(target.hostname);
  const port = portOf(target);
  return noProxy
    .split(/[,\s]+/)
    .filter((item) => item !== '')
    .some((item) => matches(item, host, port));
}

function matches(item: string, host: string, port: number): boolean {
  const [, named = item, itsPort] = /^([^:]+|\[.*\]):(\d+)$/.exec(item) ?? [];
  if (itsPort !== undefined && Number(itsPort) !== port) return false;
  if (named === '*') return true;
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

/** Returns a host name in lower case, without the brackets of IPv6 and without a trailing dot. */
function plainHost(hostname: string): string {
  return hostname
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
}

import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import { isDirect, proxyFor, readProxy } from '../../src/core/proxies.ts';

const target = (address: string) => new URL(address);

describe('NO_PROXY', () => {
  it.each([
    ['*', 'https://api.example'],
    ['example.com', 'https://example.com'],
    ['example.com', 'https://api.example.com'],
    ['.example.com', 'https://API.example.com'],
    ['*.example.com', 'https://api.example.com.'],
    ['other.example, api.example', 'http://api.example'],
    ['other.example api.example', 'http://api.example'],
    ['*:8081', 'http://api.example:8081'],
    ['api.example:443', 'https://api.example'],
    ['api.example:8081', 'http://api.example:8081'],
    ['127.0.0.1', 'http://127.0.0.1:8080'],
    ['10.0.0.0/8', 'http://10.1.2.3'],
    ['::1', 'http://[::1]:8080'],
    ['[::1]', 'http://[::1]'],
    ['[::1]:80', 'http://[::1]'],
    ['fd00::/8', 'http://[fd12::1]'],
  ])('%s excludes %s', (noProxy, address) => {
    expect(isDirect(target(address), noProxy)).toBe(true);
  });

  it.each([
    ['', 'https://api.example'],
    [' , ', 'https://api.example'],
    ['example.com', 'https://notexample.com'],
    ['api.example.com', 'https://example.com'],
    ['*:80', 'https://api.example'],
    ['api.example:80', 'https://api.example'],
    ['10.0.0.0/8', 'http://11.1.2.3'],
    ['10.0.0.0/8', 'http://api.example'],
    ['10.0.0.0/99', 'http://10.1.2.3'],
    ['0.0.1', 'http://127.0.0.1'],
    ['fd00::/8', 'http://[fe12::1]'],
  ])('%s does not exclude %s', (noProxy, address) => {
    expect(isDirect(target(address), noProxy)).toBe(false);
  });
});

describe('proxyFor', () => {
  const http = readProxy('http://one.example:3128')!;
  const https = readProxy('http://two.example:3128')!;

  it('chooses by the protocol of the server; HTTP_PROXY alone is for both', () => {
    const settings = (address: string, proxies: object) =>
      proxyFor(target(address), proxies)?.setting;
    expect(settings('http://api.example', { http, https })).toBe('HTTP_PROXY');
    expect(settings('https://api.example', { http, https })).toBe('HTTPS_PROXY');
    expect(settings('https://api.example', { http })).toBe('HTTP_PROXY');
    expect(settings('http://api.example', { https })).toBeUndefined();
    expect(settings('http://api.example', {})).toBeUndefined();
  });
});

describe('readProxy', () => {
  it.each([
    ['http://proxy.example:3128', 'http://proxy.example:3128'],
    ['http://proxy.example:3128/', 'http://proxy.example:3128'],
    ['proxy.example:3128', 'http://proxy.example:3128'],
    [' https://proxy.example ', 'https://proxy.example'],
    ['user:p%40ss@[::1]:3128', 'http://[::1]:3128'],
  ])('reads %s', (text, origin) => expect(readProxy(text)).toMatchObject({ origin }));

  it('keeps the user and the password out of everything that is printed', () => {
    const proxy = readProxy('http://user:p%40ss@proxy.example:3128');
    const basic = Buffer.from('user:p@ss').toString('base64');
    expect(proxy?.authorization?.reveal()).toBe(`Basic ${basic}`);
    expect(inspect(proxy) + JSON.stringify(proxy)).not.toMatch(new RegExp(`p@ss|p%40ss|${basic}`));
  });

  it.each([
    'socks5://proxy.example',
    'http://',
    'http://proxy.example/path',
    'http://u:%zz@p.example',
  ])('refuses %s', (text) => expect(readProxy(text)).toBeUndefined());
});

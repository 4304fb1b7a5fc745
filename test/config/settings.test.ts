import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { authority } from '../support/certificates.ts';

const ours = authority('our authority').cert;
const others = authority('another').cert;

/** What is said of a CA file with this text. */
function advice(text: string): string {
  const cwd = mkdtempSync(join(tmpdir(), 'cellarstream-ca-'));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  writeFileSync(join(cwd, 'ca.pem'), text);
  try {
    loadConfig({ env: { API_CA_FILE: 'ca.pem' }, cwd });
    return 'fine';
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
}

it.each([
  ['one certificate', ours],
  ['several', `${ours}\n${others}`],
  ['words around them', `# ours\n${ours}\n# another\n${others}\n`],
  ["a PC's line ends", ours.replaceAll('\n', '\r\n')],
])('takes a CA file with %s', (_, text) => expect(advice(text)).toBe('fine'));

it.each([
  ['other text', 'hello'],
  ['no certificate', '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n'],
  ['one that is cut off', ours.slice(0, 200)],
  ['one that is not whole', `${ours.slice(0, 200)}\n-----END CERTIFICATE-----\n`],
  [
    'a second that is no certificate',
    `${ours}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n`,
  ],
])('refuses a CA file with %s', (_, text) => {
  expect(advice(text)).toBe(
    '1 setting is wrong:\n- API_CA_FILE must name a file with certificates in PEM form, each of them complete',
  );
});

describe('proxies', () => {
  const API = { API_BASE_URL: 'https://api.example', API_KEY: 'k' };
  const load = (env: Record<string, string>, dotenv = '') => {
    const cwd = mkdtempSync(join(tmpdir(), 'cellarstream-proxy-'));
    onTestFinished(() => rmSync(cwd, { recursive: true }));
    writeFileSync(join(cwd, '.env'), dotenv);
    return loadConfig({ env: { ...API, ...env }, cwd, needs: ['api'] }).api.proxies;
  };

  it.each([
    ['upper case', { HTTPS_PROXY: 'http://a.example:3128' }, ''],
    ['lower case', { https_proxy: 'http://a.example:3128' }, ''],
    [
      'lower case before upper case',
      { https_proxy: 'http://a.example:3128', HTTPS_PROXY: 'http://b.example' },
      '',
    ],
    ['.env', {}, 'https_proxy=http://a.example:3128'],
    [
      'the environment before .env',
      { https_proxy: 'http://a.example:3128' },
      'HTTPS_PROXY=http://b.example',
    ],
  ])('are read from %s', (_, env, dotenv) => {
    expect(load(env, dotenv)?.https).toEqual({ origin: 'http://a.example:3128' });
  });

  it('are none without a proxy', () => expect(load({ NO_PROXY: '*' })).toBeUndefined());

  it('that are no addresses are refused without showing their password', () => {
    const wrong = { HTTP_PROXY: 'socks5://u:geheim@a.example' };
    expect(() => load(wrong)).toThrow(/- HTTP_PROXY must be the address of an HTTP proxy, such as/);
    expect(() => load(wrong)).not.toThrow(/geheim/);
  });
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
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
    '1 setting is wrong:\n- API_CA_FILE must name a file with certificates in PEM form, each of them whole',
  );
});

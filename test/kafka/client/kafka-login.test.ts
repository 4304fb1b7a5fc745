import { createHash, createHmac } from 'node:crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { mskTokens } from '../../../src/kafka/client/kafka-login.ts';

const ID = 'AKIDEXAMPLE';
const SECRET = 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY';
const SESSION = 'session/token+1==';
const REGION = 'eu-central-1';

beforeEach(() => {
  vi.stubEnv('AWS_ACCESS_KEY_ID', ID);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', SECRET);
  vi.stubEnv('AWS_SESSION_TOKEN', SESSION);
  vi.stubEnv('AWS_PROFILE', undefined);
});
afterEach(() => vi.unstubAllEnvs());

it('a token is a signed request to connect, as AWS documents it, good for 15 minutes', async () => {
  const now = Date.now();
  const tokens = mskTokens(REGION, { now: () => now });
  const { value, expiresAt } = await tokens.get();
  expect(value).toMatch(/^[\w-]+$/);
  const url = new URL(Buffer.from(value, 'base64url').toString());
  expect(url.origin + url.pathname).toBe(`https://kafka.${REGION}.amazonaws.com/`);
  const query = Object.fromEntries(url.searchParams);
  const date = query['X-Amz-Date']!;
  expect(query).toMatchObject({
    Action: 'kafka-cluster:Connect',
    'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
    'X-Amz-Credential': `${ID}/${date.slice(0, 8)}/${REGION}/kafka-cluster/aws4_request`,
    'X-Amz-Expires': '900',
    'X-Amz-SignedHeaders': 'host',
    'X-Amz-Security-Token': SESSION,
  });
  expect(query['X-Amz-Signature']).toBe(signatureOf(url, date));
  expect(Math.abs(expiresAt - now - 900_000)).toBeLessThan(60_000);
  expect((await tokens.get()).value).toBe(value);
});

/** Signature Version 4 of a presigned GET, from AWS's documentation. */
function signatureOf(url: URL, date: string): string {
  const parameters = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature' && name !== 'User-Agent')
    .map(([name, text]) => `${encoded(name)}=${encoded(text)}`)
    .sort();
  const hash = (text: string) => createHash('sha256').update(text).digest('hex');
  const request = ['GET', '/', parameters.join('&'), `host:${url.host}`, '', 'host', hash('')];
  const scope = `${date.slice(0, 8)}/${REGION}/kafka-cluster/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, hash(request.join('\n'))].join('\n');
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text);
  let key = Buffer.from(`AWS4${SECRET}`);
  for (const part of scope.split('/')) key = hmac(key, part).digest();
  return hmac(key, toSign).digest('hex');
}

function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

import { get } from 'node:https';
import { expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/index.ts';

it('serves https with the certificate it is given', async () => {
  const sandbox = await startSandbox({ tls: { cert: CERT, key: KEY } });
  const status = await new Promise((resolve, reject) => {
    // Whether a client trusts the certificate is the client's business.
    get(`${sandbox.url}/v1/orders`, { rejectUnauthorized: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    }).on('error', reject);
  });
  expect(sandbox.url).toMatch(/^https:/);
  expect(status).toBe(401);
  await sandbox.close();
});

// Made for this test, for the name localhost, and used for nothing else.
const CERT = `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUZh63CQjiG6JWx0ipFOBmQO4iiiYwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTAzMzcxNloYDzIxMjYxMDI4
MDMzNzE2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQN7frCnyGGXDYX4sLt4Ho7RV5mYKVNlwvr4ReRa+XcAMK8+tiC6wfC
ZuU9FNylvZX8ME8t6+yjQuxIpuR8aX2Zo28wbTAdBgNVHQ4EFgQUTwfbR6BMLbWk
YRRSNRW4V2NuUkEwHwYDVR0jBBgwFoAUTwfbR6BMLbWkYRRSNRW4V2NuUkEwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgDHSy4V01YHVhSbV7d0ybw3fNfTiiAvlwdZdcEb5FASUCIBdw
RlVcXZw8Xe++1QYa3HlcMl0fLFU5SGTmayMNVyp4
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgX3vh1K4stUNOLq6U
v0xBn5mlaCfcIY5wstW1LxjTc56hRANCAAQN7frCnyGGXDYX4sLt4Ho7RV5mYKVN
lwvr4ReRa+XcAMK8+tiC6wfCZuU9FNylvZX8ME8t6+yjQuxIpuR8aX2Z
-----END PRIVATE KEY-----
`;

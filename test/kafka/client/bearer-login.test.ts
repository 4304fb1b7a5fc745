import kafkajs from 'kafkajs';
import type { AuthenticationProviderArgs } from 'kafkajs';
import { expect, it } from 'vitest';
import { CellarstreamError } from '../../../src/core/errors.ts';
import { bearerLogin } from '../../../src/kafka/client/bearer-login.ts';
import { kafkaError, memberError } from '../../../src/kafka/client/kafka-error.ts';

const INVALID = '{"status":"invalid_token"}';

/** A login with tokens `token-1`, `token-2`, ... at a broker that answers this. */
function loginAt(answer: (message: string) => string) {
  const messages: string[] = [];
  const forgotten: string[] = [];
  let tokens = 1;
  let now = 0;
  const saslAuthenticate = async ({
    request,
    response,
  }: {
    request: { encode: () => Buffer | Promise<Buffer> };
    response: { decode: (bytes: Buffer) => Buffer; parse: (bytes: Buffer) => string };
  }) => {
    const bytes = await request.encode();
    expect(bytes.readInt32BE()).toBe(bytes.length - 4);
    const message = bytes.subarray(4).toString();
    messages.push(message);
    const text = Buffer.from(answer(message));
    return response.parse(response.decode(Buffer.concat([Buffer.alloc(4), text])));
  };
  const mechanism = bearerLogin({
    tokens: {
      get: () => Promise.resolve({ value: `token-${tokens}`, expiresAt: Infinity }),
      forget: (value) => {
        forgotten.push(value);
        tokens += 1;
      },
    },
    extensions: { logicalCluster: 'lkc-1', identityPoolId: 'pool-2' },
    advice: 'check KAFKA_OAUTH_SCOPE',
    now: () => now,
  });
  const args = {
    host: 'broker',
    port: 9092,
    saslAuthenticate,
  } as unknown as AuthenticationProviderArgs;
  return {
    messages,
    forgotten,
    pass: (ms: number) => (now += ms),
    login: () => mechanism.authenticationProvider(args).authenticate(),
  };
}

const failed = (login: Promise<void>) =>
  login.then(
    () => expect.fail('no error'),
    (error: unknown) => error as Error,
  );

it('sends the token and the extensions as RFC 7628 has them', async () => {
  const { login, messages } = loginAt(() => '');
  await login();
  expect(messages).toEqual([
    'n,,\u0001auth=Bearer token-1\u0001logicalCluster=lkc-1\u0001identityPoolId=pool-2\u0001\u0001',
  ]);
});

it('a token that a broker refuses is an error at once, passes for a while, and then does not', async () => {
  const { login, messages, forgotten, pass } = loginAt((message) =>
    message === '\u0001' ? '' : INVALID,
  );
  const first = await failed(login());
  expect(messages[1]).toBe('\u0001');
  expect(first).toBeInstanceOf(kafkajs.KafkaJSConnectionError);
  const message = 'Kafka at broker:9092 refuses the login (invalid_token): check KAFKA_OAUTH_SCOPE';
  expect(kafkaError(first)).toMatchObject({ code: 'KAFKA_UNREACHABLE', message });
  expect(memberError(first, 'a group')).toMatchObject({ code: 'KAFKA_UNREACHABLE', message });
  pass(20_000);
  const last = await failed(login());
  expect(last).toBeInstanceOf(kafkajs.KafkaJSSASLAuthenticationError);
  expect(kafkaError(last)).toMatchObject({ code: 'KAFKA_REFUSED', message });
  expect(forgotten).toEqual(['token-1', 'token-2']);
});

it('once a token was accepted, refusals pass for minutes', async () => {
  let answer = '';
  const { login, pass } = loginAt(() => answer);
  await login();
  answer = INVALID;
  await failed(login());
  pass(300_000);
  expect(kafkaError(await failed(login()))).toMatchObject({ code: 'KAFKA_UNREACHABLE' });
  pass(300_000);
  expect(kafkaError(await failed(login()))).toMatchObject({ code: 'KAFKA_REFUSED' });
});

it('a broker that refuses with an error of the protocol is the same', async () => {
  const { login } = loginAt(() => {
    const refusal = new Error('Authentication failed: unknown identity pool');
    throw new kafkajs.KafkaJSProtocolError(
      Object.assign(refusal, { type: 'SASL_AUTHENTICATION_FAILED', code: 58, retriable: false }),
    );
  });
  expect(kafkaError(await failed(login()))).toMatchObject({
    message: expect.stringContaining('(Authentication failed: unknown identity pool)'),
  });
});

it('a commit that failed for a login that may pass has to be read back', async () => {
  const { login } = loginAt(() => INVALID);
  const error = kafkaError(await failed(login()), 'COMMIT_FAILED');
  expect(error).toBeInstanceOf(CellarstreamError);
  expect(error).toMatchObject({ code: 'COMMIT_FAILED' });
});

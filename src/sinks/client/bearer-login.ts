// Logins with bearer tokens (SASL OAUTHBEARER) for kafkajs.

import kafkajs from 'kafkajs';
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from 'kafkajs';
import type { AccessTokens } from '../../core/access-tokens.ts';
import { steadyScheduler } from '../../core/clock.ts';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';

interface BearerLoginOptions {
  readonly tokens: Pick<AccessTokens, 'get' | 'forget'>;
  /** Sent with each token. */
  readonly extensions: Readonly<Record<string, string>>;
  /** Advice in the error when brokers refuse a token: the settings and rights to check. */
  readonly advice: string;
  /** Time in ms. Default {@link steadyScheduler}'s. */
  readonly now?: () => number;
}

/**
 * How long brokers may refuse tokens before that counts as final, in ms: a broker refuses the first token that is signed with a key
 * it has yet to fetch. Too large: a wrong audience is retried for so long.
 */
const PATIENCE_MS = 15_000;
/** The same once a token has been accepted: then the identity provider, or the brokers' way to it, is more likely at fault. */
const PROVEN_PATIENCE_MS = 600_000;

/** Ends each part of a message (RFC 7628, section 3.1). */
const SEPARATOR = '\u0001';

/**
 * SASL OAUTHBEARER (RFC 7628) for kafkajs. kafkajs' own does not read the broker's answer, which is how a broker refuses a token:
 * the connection is then closed at the next request, and nothing says why. Needed as long as kafkajs is 2.2.
 *
 * Errors are kafkajs' own, by which it decides whether to try again; their cause is a CellarstreamError.
 */
export function bearerLogin(options: BearerLoginOptions): Mechanism {
  const { tokens, extensions, advice, now = () => steadyScheduler.now() } = options;
  let hasAccepted = false;
  let refusedSince: number | undefined;

  const refused = (broker: string, words: string): Error => {
    refusedSince ??= now();
    const isFinal = now() - refusedSince >= (hasAccepted ? PROVEN_PATIENCE_MS : PATIENCE_MS);
    const message = `Kafka at ${broker} refuses the login (${words}): ${advice}`;
    return loginError(
      new CellarstreamError(isFinal ? 'KAFKA_REFUSED' : 'KAFKA_UNREACHABLE', message),
      broker,
    );
  };

  const authenticate = async ({ host, port, saslAuthenticate }: AuthenticationProviderArgs) => {
    const broker = `${host}:${port}`;
    const { value } = await tokens.get().catch((error: unknown) => {
      throw loginError(error, broker);
    });
    const exchange = async (message: string): Promise<string> => {
      const answer = await saslAuthenticate({ request: requestOf(message), response: RESPONSE });
      return answer ?? '';
    };
    let refusal: string;
    try {
      refusal = await exchange(initialMessage(value, extensions));
      // The broker's last word comes after this confirmation (RFC 7628, section 3.2.3).
      if (refusal !== '') await exchange(SEPARATOR);
    } catch (error) {
      if (!(error instanceof kafkajs.KafkaJSProtocolError)) throw error;
      if (error.type !== 'SASL_AUTHENTICATION_FAILED') throw error;
      refusal = error.message;
    }
    if (refusal !== '') {
      tokens.forget(value);
      throw refused(broker, statusOf(refusal));
    }
    hasAccepted = true;
    refusedSince = undefined;
  };
  return {
    mechanism: 'oauthbearer',
    authenticationProvider: (args): Authenticator => ({ authenticate: () => authenticate(args) }),
  };
}

/** kafkajs' types leave its message out. */
const SaslError = kafkajs.KafkaJSSASLAuthenticationError as new (message: string) => Error;

/** kafkajs tries again, with another broker, after a connection error; an error of a login is final to it. */
function loginError(cause: unknown, broker: string): Error {
  const message = cause instanceof Error ? cause.message : String(cause);
  const error = isRetryable(cause)
    ? new kafkajs.KafkaJSConnectionError(message, { broker })
    : new SaslError(message);
  return Object.assign(error, { cause });
}

function initialMessage(token: string, extensions: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(extensions).map(([name, value]) => `${name}=${value}`);
  const parts = ['n,,', `auth=Bearer ${token}`, ...pairs];
  return parts.map((part) => part + SEPARATOR).join('') + SEPARATOR;
}

/** kafkajs frames a mechanism's messages, both ways, with their length. */
const LENGTH_BYTES = 4;

function requestOf(message: string): { encode: () => Buffer } {
  const bytes = Buffer.from(message);
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeInt32BE(bytes.length);
  const framed = Buffer.concat([length, bytes]);
  return { encode: () => framed };
}

const RESPONSE = {
  decode: (framed: Buffer) => framed.subarray(LENGTH_BYTES),
  parse: (bytes: Buffer) => bytes.toString(),
};

/** The status of a refusal: `{"status":"invalid_token"}`; or all of it, on one line. */
function statusOf(refusal: string): string {
  const status = /"status"\s*:\s*"([\w -]+)"/.exec(refusal)?.[1];
  return status ?? refusal.replace(/\s+/g, ' ').slice(0, 200);
}

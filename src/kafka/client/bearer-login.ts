// Logins with bearer tokens (SASL OAUTHBEARER) for kafkajs.

import kafkajs from 'kafkajs';
import type { AuthenticationProviderArgs, Authenticator, Mechanism } from 'kafkajs';
import type { AccessTokens } from '../../core/access-tokens.ts';
import { CellarstreamError, isRetryable } from '../../core/errors.ts';
import { LASTING_MS, lasting } from '../../core/retries.ts';
import { bytes } from './protocol.ts';

interface BearerLoginOptions {
  readonly tokens: Pick<AccessTokens, 'get' | 'forget'>;
  /** SASL extensions that are sent with each token. */
  readonly extensions: Readonly<Record<string, string>>;
  /** Advice in the error when brokers refuse a token: the settings and rights to check. */
  readonly advice: string;
  /** Returns the time of a monotonic clock, in ms. Default: `performance.now`. */
  readonly now?: () => number;
}

/** Character that ends each part of a login message (RFC 7628, section 3.1). */
const SEPARATOR = '\u0001';

/**
 * Creates the SASL OAUTHBEARER mechanism with which kafkajs logs in (KIP-255, RFC 7628). It replaces the mechanism of kafkajs 2.2, which
 * does not read the broker's response: a refused token would only show as a closed connection.
 *
 * Login errors are instances of kafkajs' error classes, because kafkajs decides by the class whether to retry. Their cause is a
 * CellarstreamError.
 */
export function bearerLogin(options: BearerLoginOptions): Mechanism {
  const login = new BearerLogin(options);
  return {
    mechanism: 'oauthbearer',
    authenticationProvider: (args): Authenticator => ({ authenticate: () => login.run(args) }),
  };
}

class BearerLogin {
  readonly #options: BearerLoginOptions;
  readonly #refusing: ReturnType<typeof lasting>;
  #hasAccepted = false;

  constructor(options: BearerLoginOptions) {
    this.#options = options;
    this.#refusing = lasting(options.now);
  }

  async run({ host, port, saslAuthenticate }: AuthenticationProviderArgs): Promise<void> {
    const { tokens, extensions } = this.#options;
    const broker = `${host}:${port}`;
    const { value } = await tokens.get().catch((error: unknown) => {
      throw loginError(error, broker);
    });
    const exchange = async (message: string): Promise<string> => {
      const request = { encode: () => bytes(Buffer.from(message)) };
      return (await saslAuthenticate({ request, response: RESPONSE })) ?? '';
    };
    let refusal: string;
    try {
      refusal = await exchange(initialMessage(value, extensions));
      // A refusal has to be confirmed before the broker ends the exchange (RFC 7628, section 3.2.3).
      if (refusal !== '') await exchange(SEPARATOR);
    } catch (error) {
      if (!(error instanceof kafkajs.KafkaJSProtocolError)) throw error;
      if (error.type !== 'SASL_AUTHENTICATION_FAILED') throw error;
      refusal = error.message;
    }
    if (refusal !== '') {
      tokens.forget(value);
      throw this.#refused(broker, statusOf(refusal));
    }
    this.#hasAccepted = true;
    this.#refusing(false);
  }

  #refused(broker: string, status: string): Error {
    const { refusedToken, refusedProvenToken } = LASTING_MS;
    const isFinal = this.#refusing(true) >= (this.#hasAccepted ? refusedProvenToken : refusedToken);
    const message = `Kafka at ${broker} refuses the login (${status}): ${this.#options.advice}`;
    const code = isFinal ? 'KAFKA_REFUSED' : 'KAFKA_UNREACHABLE';
    return loginError(new CellarstreamError(code, message), broker);
  }
}

/** Constructor of kafkajs' error for a failed login. kafkajs' type declarations lack its parameter. */
const SaslError = kafkajs.KafkaJSSASLAuthenticationError as new (message: string) => Error;

/**
 * Wraps the cause of a failed login in an error of kafkajs: a connection error if a retry may succeed, otherwise a login error, which is
 * final for kafkajs.
 */
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

/** Size of the length field that precedes each message of a login, in bytes. */
const LENGTH_BYTES = 4;

const RESPONSE = {
  decode: (framed: Buffer) => framed.subarray(LENGTH_BYTES),
  parse: (message: Buffer) => message.toString(),
};

/** Returns the status in a broker's refusal of a token, such as `invalid_token`; without a status, the beginning of the refusal. */
function statusOf(refusal: string): string {
  const status = /"status"\s*:\s*"([\w -]+)"/.exec(refusal)?.[1];
  return status ?? refusal.replace(/\s+/g, ' ').slice(0, 200);
}

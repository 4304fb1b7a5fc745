// TLS and login options of the brokers in kafkajs' form, and the sources of access tokens.

import type { ConnectionOptions } from 'node:tls';
import { rootCertificates } from 'node:tls';
import type { Mechanism, SASLOptions } from 'kafkajs';
import type { Dispatcher } from 'undici';
import type { KafkaConfig } from '../../config/config.ts';
import { clientTokens } from '../../core/client-tokens.ts';
import type { AccessTokensOptions } from '../../core/access-tokens.ts';
import { bearerLogin } from './bearer-login.ts';
import { AccessTokens } from '../../core/access-tokens.ts';
import { CellarstreamError } from '../../core/errors.ts';
import { httpConnections } from '../../core/http-connections.ts';
import type { Proxies } from '../../core/proxies.ts';

/** Converts the TLS settings of the brokers to kafkajs' options; false without TLS. */
export function kafkaTls({ ssl }: KafkaConfig): ConnectionOptions | false {
  return (
    ssl && {
      rejectUnauthorized: true, // otherwise NODE_TLS_REJECT_UNAUTHORIZED=0 would disable verification
      ...(ssl.ca !== undefined && { ca: ssl.ca }),
      ...(ssl.client && { cert: ssl.client.cert, key: ssl.client.key.reveal() }),
      ...(ssl.client?.password && { passphrase: ssl.client.password.reveal() }),
    }
  );
}

/** Converts the login settings of the brokers to kafkajs' options; undefined without a login. */
export function kafkaSasl(
  { sasl, ssl, proxies }: KafkaConfig,
  onRenewalFailed: NonNullable<AccessTokensOptions['onRenewalFailed']>,
): SASLOptions | Mechanism | undefined {
  if (!sasl) return undefined;
  switch (sasl.mechanism) {
    case 'oauthbearer': {
      const { credentials, extensions } = sasl;
      const errors = {
        settings: 'KAFKA_OAUTH',
        ca: 'KAFKA_SSL_CA_FILE',
        unreachable: 'KAFKA_UNREACHABLE',
        refused: 'KAFKA_REFUSED',
      } as const;
      const dispatcher = tokenConnections(ssl ? ssl.ca : undefined, proxies);
      const tokens = clientTokens({ credentials, errors, dispatcher }, { onRenewalFailed });
      const advice =
        'check KAFKA_OAUTH_SCOPE, and the issuer and audience in the settings of the brokers';
      return bearerLogin({ tokens, extensions, advice });
    }
    case 'aws-msk-iam': {
      const tokens = mskTokens(sasl.region, { onRenewalFailed });
      const advice = 'check AWS_REGION, and that the IAM policy allows kafka-cluster:Connect';
      return bearerLogin({ tokens, extensions: {}, advice });
    }
    default: {
      const { mechanism, username, password } = sasl;
      return { mechanism, username, password: password.reveal() } as SASLOptions;
    }
  }
}

const PACKAGE = 'aws-msk-iam-sasl-signer-js';

/**
 * Creates the source of login tokens for Amazon MSK with IAM. AWS's package makes a token from the credentials that AWS's SDK finds. A
 * token is valid for 15 minutes.
 */
export function mskTokens(
  region: string,
  options: Pick<AccessTokensOptions, 'onRenewalFailed' | 'now'> = {},
): AccessTokens {
  const request = async (now: number) => {
    const { generateAuthToken } = await signer();
    try {
      const { token, expiryTime } = await generateAuthToken({ region });
      return { value: token, lifeMs: Math.max(1, expiryTime - now) };
    } catch (cause) {
      const message =
        'no AWS credentials for KAFKA_SASL_MECHANISM=aws-msk-iam: set them in the environment, a profile or a role';
      throw new CellarstreamError('KAFKA_UNREACHABLE', message, { cause });
    }
  };
  const issuer = 'the source of AWS credentials';
  return new AccessTokens({ ...options, request, issuer, unreachable: 'KAFKA_UNREACHABLE' });
}

async function signer(): Promise<typeof import('aws-msk-iam-sasl-signer-js')> {
  try {
    return await import('aws-msk-iam-sasl-signer-js');
  } catch (cause) {
    const message = `KAFKA_SASL_MECHANISM=aws-msk-iam needs the package ${PACKAGE}: npm install ${PACKAGE}`;
    throw new CellarstreamError('KAFKA_REFUSED', message, { cause });
  }
}

/**
 * Longest time to connect to a token endpoint, in ms; also the longest wait for its response headers, and for each further part of the
 * body.
 */
const TIMEOUT_MS = 10_000;

/**
 * Creates the HTTP client for a token endpoint. It trusts the certificates in `ca` (PEM) and also Node's root certificates, because the
 * identity provider may be public.
 */
export function tokenConnections(ca: string | undefined, proxies: Proxies | undefined): Dispatcher {
  return httpConnections({
    ca: ca === undefined ? undefined : [...rootCertificates, ca].join('\n'),
    connectTimeoutMs: TIMEOUT_MS,
    responseTimeoutMs: TIMEOUT_MS,
    proxies,
  });
}

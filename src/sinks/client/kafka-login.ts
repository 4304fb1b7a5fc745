import type { ConnectionOptions } from 'node:tls';
import type { Mechanism, SASLOptions } from 'kafkajs';
import type { Dispatcher } from 'undici';
import type { KafkaConfig, KafkaLogin } from '../../config/config.ts';
import { clientTokens } from '../../core/client-tokens.ts';
import type { AccessTokensOptions } from '../../core/access-tokens.ts';
import { bearerLogin } from './bearer-login.ts';
import { mskTokens } from './msk-tokens.ts';
import { tokenConnections } from './token-connections.ts';

/** TLS to the brokers as kafkajs takes it. */
export function kafkaTls({ ssl }: KafkaConfig): ConnectionOptions | false {
  return (
    ssl && {
      rejectUnauthorized: true, // an environment variable of Node's would turn it off
      ...(ssl.ca !== undefined && { ca: ssl.ca }),
      ...(ssl.client && { cert: ssl.client.cert, key: ssl.client.key.reveal() }),
      ...(ssl.client?.password && { passphrase: ssl.client.password.reveal() }),
    }
  );
}

type RenewalFailed = NonNullable<AccessTokensOptions['onRenewalFailed']>;

/** The login to the brokers as kafkajs takes it. */
export function kafkaSasl(
  { sasl, ssl, proxies }: KafkaConfig,
  onRenewalFailed: RenewalFailed,
): SASLOptions | Mechanism | undefined {
  if (!sasl) return undefined;
  switch (sasl.mechanism) {
    case 'oauthbearer': {
      const dispatcher = tokenConnections(ssl ? ssl.ca : undefined, proxies);
      const tokens = oauthTokens(sasl, dispatcher, onRenewalFailed);
      const advice = 'check KAFKA_OAUTH_SCOPE, and which issuer and audience the brokers expect';
      return bearerLogin({ tokens, extensions: sasl.extensions, advice });
    }
    case 'aws-msk-iam': {
      const tokens = mskTokens(sasl.region, { onRenewalFailed });
      const advice =
        'its IAM policy must allow kafka-cluster:Connect, and AWS_REGION must be right';
      return bearerLogin({ tokens, extensions: {}, advice });
    }
    default: {
      const { mechanism, username, password } = sasl;
      return { mechanism, username, password: password.reveal() } as SASLOptions;
    }
  }
}

function oauthTokens(
  { credentials }: Extract<KafkaLogin, { mechanism: 'oauthbearer' }>,
  dispatcher: Dispatcher,
  onRenewalFailed: RenewalFailed,
) {
  const errors = {
    settings: 'KAFKA_OAUTH',
    ca: 'KAFKA_SSL_CA_FILE',
    unreachable: 'KAFKA_UNREACHABLE',
    refused: 'KAFKA_REFUSED',
  } as const;
  return clientTokens({ credentials, errors, dispatcher }, { onRenewalFailed });
}

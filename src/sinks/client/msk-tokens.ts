import { AccessTokens } from '../../core/access-tokens.ts';
import type { AccessTokensOptions } from '../../core/access-tokens.ts';
import { CellarstreamError } from '../../core/errors.ts';

const PACKAGE = 'aws-msk-iam-sasl-signer-js';

/**
 * Tokens for Amazon MSK with IAM: a signed request to connect, made by AWS's own package from the credentials that AWS's SDK finds
 * (environment, profile, web identity, container, instance). They are good for 15 minutes.
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
      const message = 'no AWS credentials to sign the login to Kafka with (aws-msk-iam)';
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

import { clientCertificateProblems } from './client-certificate.ts';
import { itemsOf } from './setting-parsers.ts';
import { unmetRequirements } from './setting-texts.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';

const PASSWORD = ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'];
/** Settings that each SASL mechanism requires. */
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  plain: PASSWORD,
  'scram-sha-256': PASSWORD,
  'scram-sha-512': PASSWORD,
  oauthbearer: ['KAFKA_OAUTH_TOKEN_URL', 'KAFKA_OAUTH_CLIENT_ID', 'KAFKA_OAUTH_CLIENT_SECRET'],
  'aws-msk-iam': [],
};
/** Optional settings of the SASL mechanism `oauthbearer`, in addition to those that it requires. */
const OAUTH_OPTIONS = ['KAFKA_OAUTH_SCOPE', 'KAFKA_OAUTH_EXTENSIONS'];
const LOGIN_SETTINGS = [...PASSWORD, ...REQUIRED.oauthbearer!, ...OAUTH_OPTIONS];

/**
 * Returns problems with the Kafka settings for TLS, the client certificate and the login: required settings that are missing, and settings
 * that contradict each other.
 */
export function kafkaProblems(texts: SettingTexts): SettingProblem[] {
  return [
    ...tlsProblems(texts),
    ...clientCertificateProblems(texts, {
      cert: 'KAFKA_SSL_CERT_FILE',
      key: 'KAFKA_SSL_KEY_FILE',
      password: 'KAFKA_SSL_KEY_PASSWORD',
    }),
    ...loginProblems(texts),
  ];
}

function tlsProblems(texts: SettingTexts): SettingProblem[] {
  if (texts.KAFKA_SSL?.toLowerCase() === 'true') return [];
  const advice = 'needs KAFKA_SSL=true';
  const problems = ['KAFKA_SSL_CA_FILE', 'KAFKA_SSL_CERT_FILE']
    .filter((name) => texts[name] !== undefined)
    .map((name) => ({ name, advice }));
  if (mechanismOf(texts) !== 'aws-msk-iam') return problems;
  return [...problems, { name: 'KAFKA_SASL_MECHANISM', advice: `aws-msk-iam ${advice}` }];
}

function loginProblems(texts: SettingTexts): SettingProblem[] {
  const mechanism = mechanismOf(texts);
  const required = mechanism === undefined ? [] : REQUIRED[mechanism];
  if (!required) return []; // an unknown mechanism is reported by the schema
  const requirements = required.map((name) => ['KAFKA_SASL_MECHANISM', name] as const);
  const used = [...required, ...(mechanism === 'oauthbearer' ? OAUTH_OPTIONS : [])];
  const advice =
    mechanism === undefined
      ? 'needs KAFKA_SASL_MECHANISM: it is not set'
      : `is not used by KAFKA_SASL_MECHANISM=${mechanism}: unset one of them`;
  const unused = LOGIN_SETTINGS.filter(
    (name) => texts[name] !== undefined && !used.includes(name),
  ).map((name) => ({ name, advice }));
  return [...unmetRequirements(texts, requirements), ...unused, ...regionProblems(texts)];
}

function regionProblems(texts: SettingTexts): SettingProblem[] {
  if (mechanismOf(texts) !== 'aws-msk-iam') return [];
  if (mskRegion(itemsOf(texts.KAFKA_BROKERS ?? ''), texts.AWS_REGION) !== undefined) return [];
  const advice =
    'aws-msk-iam needs AWS_REGION: it is not set, and the names in KAFKA_BROKERS have no region';
  return [{ name: 'KAFKA_SASL_MECHANISM', advice }];
}

function mechanismOf(texts: SettingTexts): string | undefined {
  return texts.KAFKA_SASL_MECHANISM?.toLowerCase();
}

/**
 * Returns the AWS region of an MSK cluster, from the first broker's host name. If the host name contains no region, returns `ofEnv`, the
 * value of `AWS_REGION`.
 */
export function mskRegion(
  brokers: readonly string[],
  ofEnv: string | undefined,
): string | undefined {
  const [host = ''] = brokers;
  return /\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com/.exec(host)?.[1] ?? ofEnv;
}

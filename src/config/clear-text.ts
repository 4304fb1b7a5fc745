import { isIPv4 } from 'node:net';
import { loginUrlOf } from './config-of.ts';
import type { ApiConfig, Config, KafkaConfig, RegistryConfig } from './config.ts';
import type { SettingProblem } from './setting-texts.ts';

/** Warnings about settings that send a secret without TLS to another machine. */
export function clearTextWarnings({
  api,
  kafka,
  registry,
}: Pick<Config, 'api' | 'kafka' | 'registry'>): SettingProblem[] {
  return [
    ...(api ? apiWarnings(api) : []),
    ...(kafka ? kafkaWarnings(kafka) : []),
    ...(registry ? registryWarnings(registry) : []),
  ];
}

function apiWarnings({ baseUrl, loginUrl }: ApiConfig): SettingProblem[] {
  const secrets = 'the API key or its tokens';
  const isOwnLogin = loginUrl !== loginUrlOf(baseUrl);
  return [
    ...addressWarnings('API_BASE_URL', baseUrl, secrets),
    ...(isOwnLogin ? addressWarnings('API_LOGIN_URL', loginUrl, secrets) : []),
  ];
}

/** Secrets that a client sends to an OAuth 2 token endpoint, and receives from it. */
const CLIENT_SECRETS = 'the client secret and the tokens';

/**
 * Warns about PLAIN and OAUTHBEARER logins without TLS. The other mechanisms need no warning: SCRAM does not reveal the password, and MSK
 * with IAM requires TLS.
 */
function kafkaWarnings({ sasl, ssl, brokers }: KafkaConfig): SettingProblem[] {
  if (sasl?.mechanism !== 'plain' && sasl?.mechanism !== 'oauthbearer') return [];
  const isPlain =
    !ssl && brokers.some((broker) => !isLoopback(broker.replace(/:\d+$/, '').toLowerCase()));
  const secret = sasl.mechanism === 'plain' ? 'the password' : 'the token';
  const advice = `${sasl.mechanism} without KAFKA_SSL=true: ${secret} crosses the network in clear text`;
  return [
    ...(isPlain ? [{ name: 'KAFKA_SASL_MECHANISM', advice }] : []),
    ...(sasl.mechanism === 'oauthbearer'
      ? addressWarnings('KAFKA_OAUTH_TOKEN_URL', sasl.credentials.tokenUrl, CLIENT_SECRETS)
      : []),
  ];
}

function registryWarnings({ url, auth, headers }: RegistryConfig): SettingProblem[] {
  const hasLogin = auth !== undefined || Object.keys(headers).length > 0;
  return [
    ...(hasLogin ? addressWarnings('SCHEMA_REGISTRY_URL', url, 'the credentials') : []),
    ...(auth?.kind === 'oauth'
      ? addressWarnings(
          'SCHEMA_REGISTRY_OAUTH_TOKEN_URL',
          auth.credentials.tokenUrl,
          CLIENT_SECRETS,
        )
      : []),
  ];
}

function addressWarnings(name: string, address: string, secrets: string): SettingProblem[] {
  const { protocol, hostname } = new URL(address);
  if (protocol !== 'http:' || isLoopback(hostname)) return [];
  return [{ name, advice: `begins with http://: ${secrets} cross the network in clear text` }];
}

function isLoopback(hostname: string): boolean {
  return (
    /^(.+\.)?localhost$/.test(hostname) ||
    (isIPv4(hostname) && hostname.startsWith('127.')) ||
    hostname === '[::1]'
  );
}

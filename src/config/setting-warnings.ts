import { isIPv4 } from 'node:net';
import { credentialWords, hasLogin } from '../description/credentials.ts';
import { listNamed } from '../description/description.ts';
import type { ApiDescription } from '../description/description.ts';
import { loginUrlOf } from '../streams/http/token-request.ts';
import { HIDING_METHODS } from '../streams/records/personal-fields.ts';
import type { ApiConfig, Config, KafkaConfig, RegistryConfig } from './config.ts';
import { describedType, piiItem, volatileItem } from './field-problems.ts';
import type { SettingsSource } from './load-config.ts';
import type { FieldPointer } from './setting-parsers.ts';
import { isQuoted, QUOTED, settingTexts } from './setting-texts.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { SECRETS, settingsFor } from './settings.ts';

/** Advice for a secret that begins or ends with white space, or contains a line break or a zero-width space, usually by mistake. */
const SPACED =
  'begins or ends with a space, or contains a line break: it is sent unchanged, so remove the white space unless it is part of the secret';

/**
 * Returns warnings about settings that are allowed but may be mistakes, such as a value in quotes, or a secret sent in clear text.
 *
 * @param source Where the settings of `config` were read from.
 */
export function settingWarnings(config: Config, source: SettingsSource): SettingProblem[] {
  const texts = settingTexts(source.env, source.cwd, []);
  const settings = settingsFor(config.description).names;
  const warnings = (names: readonly string[], test: (text: string) => boolean, advice: string) =>
    names.filter((name) => test(texts[name] ?? '')).map((name) => ({ name, advice }));
  return [
    ...unknownNames(texts, settings),
    ...warnings(settings, isQuoted, QUOTED),
    ...warnings(SECRETS, (text) => text !== text.trim() || /[\r\n\u200b]/.test(text), SPACED),
    ...(config.api ? apiWarnings(config.api, config.description) : []),
    ...(config.kafka ? kafkaWarnings(config.kafka) : []),
    ...(config.registry ? registryWarnings(config.registry) : []),
    ...undescribed(config),
  ];
}

/** Prefixes of settings. A variable that has such a prefix but is not a setting is probably misspelled. */
const OWN_PREFIXES = ['KAFKA_SSL_', 'KAFKA_SASL_', 'KAFKA_OAUTH_', 'SCHEMA_REGISTRY_'] as const;
/** Variables that Kubernetes sets for a service named `schema-registry`. */
const OF_KUBERNETES = /^SCHEMA_REGISTRY_(SERVICE_(HOST|PORT)|PORT)(_|$)/;

function unknownNames(texts: SettingTexts, settings: readonly string[]): SettingProblem[] {
  const isUnknown = (name: string) =>
    OWN_PREFIXES.some((prefix) => name.startsWith(prefix)) &&
    !settings.includes(name) &&
    !OF_KUBERNETES.test(name);
  return Object.keys(texts)
    .filter(isUnknown)
    .map((name) => ({ name, advice: 'is not a setting and is ignored: check its spelling' }));
}

/** Returns warnings about fields that a `PII_` setting or `VOLATILE_FIELDS` names but the documented schema of their list does not have. */
function undescribed({ description, pii, volatileFields }: Config): SettingProblem[] {
  const isUndescribed = ({ resource, path }: FieldPointer) => {
    const list = listNamed(description, resource);
    return list.types !== undefined && !describedType(list, path);
  };
  const warning = (name: string, item: string, effect: string) => ({
    name,
    advice: `names ${item}, which is not a field of the schema: a misspelled name ${effect}`,
  });
  return [
    ...HIDING_METHODS.flatMap((method) =>
      pii[method]
        .filter(isUndescribed)
        .map((field) => warning(`PII_${method.toUpperCase()}`, piiItem(field), 'hides nothing')),
    ),
    ...volatileFields
      .filter(isUndescribed)
      .map((field) => warning('VOLATILE_FIELDS', volatileItem(field), 'does nothing')),
  ];
}

// The following functions return warnings about settings that send a secret without TLS to another machine.

function apiWarnings(
  { baseUrl, loginUrl, parameters = {} }: ApiConfig,
  description: ApiDescription,
): SettingProblem[] {
  const { auth } = description;
  if (auth === 'none') return [];
  const { noun } = credentialWords(auth);
  const secrets = hasLogin({ auth })
    ? `the ${noun} or ${noun === 'API key' ? 'its' : 'their'} tokens`
    : `the ${noun}`;
  const base = new URL(baseUrl);
  const usual = loginUrlOf(description, base, parameters);
  const loginWarnings = () => {
    if (!usual) return [];
    if (loginUrl !== usual.href) return addressWarnings('API_LOGIN_URL', loginUrl, secrets);
    if (usual.origin === base.origin) return [];
    return addressWarnings('token_url in API_DESCRIPTION', loginUrl, secrets);
  };
  return [...addressWarnings('API_BASE_URL', baseUrl, secrets), ...loginWarnings()];
}

/** Phrase for the secrets exchanged with an OAuth 2 token endpoint, used in warnings. */
const CLIENT_SECRETS = 'the client secret and the tokens';

/** Returns warnings about PLAIN and OAUTHBEARER logins without TLS at brokers on other machines, and about a token endpoint without TLS. */
function kafkaWarnings({ sasl, ssl, brokers }: KafkaConfig): SettingProblem[] {
  // SCRAM does not reveal the password, and MSK with IAM requires TLS.
  if (sasl?.mechanism !== 'plain' && sasl?.mechanism !== 'oauthbearer') return [];
  const isPlain =
    !ssl && brokers.some((broker) => !isLoopback(broker.replace(/:\d+$/, '').toLowerCase()));
  const secret = sasl.mechanism === 'plain' ? 'the password' : 'the token';
  const advice = `${sasl.mechanism} without KAFKA_SSL=true: ${secret} crosses the network in clear text`;
  const warnings = isPlain ? [{ name: 'KAFKA_SASL_MECHANISM', advice }] : [];
  if (sasl.mechanism !== 'oauthbearer') return warnings;
  const { tokenUrl } = sasl.credentials;
  return [...warnings, ...addressWarnings('KAFKA_OAUTH_TOKEN_URL', tokenUrl, CLIENT_SECRETS)];
}

function registryWarnings({ url, auth, headers }: RegistryConfig): SettingProblem[] {
  const hasLogin = auth !== undefined || Object.keys(headers).length > 0;
  const warnings = hasLogin ? addressWarnings('SCHEMA_REGISTRY_URL', url, 'the credentials') : [];
  if (auth?.kind !== 'oauth') return warnings;
  const { tokenUrl } = auth.credentials;
  const setting = 'SCHEMA_REGISTRY_OAUTH_TOKEN_URL';
  return [...warnings, ...addressWarnings(setting, tokenUrl, CLIENT_SECRETS)];
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

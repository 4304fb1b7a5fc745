import { credentialsIn, CREDENTIALS } from '../description/credentials.ts';
import type { ApiDescription } from '../description/description.ts';
import { clientCertificateProblems } from './client-certificate.ts';
import { fieldProblems } from './field-problems.ts';
import { kafkaProblems } from './kafka-problems.ts';
import { itemsOf } from './setting-parsers.ts';
import { isSecret, unmetRequirements } from './setting-texts.ts';
import type { Requirement, SettingProblem, SettingTexts } from './setting-texts.ts';
import { keyFieldsSetting, singleReadKeys, settingsFor } from './settings.ts';
import type { Name, Need, SettingTable } from './settings.ts';

/** Returns problems that concern several settings: required ones that are missing, contradictions, and names that no setting has. */
export function settingProblems(
  texts: SettingTexts,
  needs: readonly Need[],
  description: ApiDescription,
): SettingProblem[] {
  const table = settingsFor(description);
  return [
    ...missingSettings(texts, needs, table, description.settingUses),
    ...contradictions(texts, description),
    ...unknownSettings(texts, table),
  ];
}

function missingSettings(
  texts: SettingTexts,
  needs: readonly Need[],
  { about, needed: all }: SettingTable,
  uses: ApiDescription['settingUses'],
): SettingProblem[] {
  return all.flatMap((name) => {
    const { needed } = about(name);
    if (!needed || !needs.includes(needed.in) || texts[name] !== undefined) return [];
    const orFile = isSecret(name) ? `, nor ${name}_FILE` : '';
    return [{ name, advice: `is not set${orFile}: ${uses[name] ?? needed.advice}` }];
  });
}

const REQUIREMENTS: readonly (Requirement & readonly [Name, Name])[] = [
  ['SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD'],
  ['SCHEMA_REGISTRY_PASSWORD', 'SCHEMA_REGISTRY_USERNAME'],
  ['SCHEMA_REGISTRY_OAUTH_TOKEN_URL', 'SCHEMA_REGISTRY_OAUTH_CLIENT_ID'],
  ['SCHEMA_REGISTRY_OAUTH_TOKEN_URL', 'SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET'],
  ['SCHEMA_REGISTRY_OAUTH_CLIENT_ID', 'SCHEMA_REGISTRY_OAUTH_TOKEN_URL'],
  ['SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET', 'SCHEMA_REGISTRY_OAUTH_TOKEN_URL'],
  ['SCHEMA_REGISTRY_OAUTH_SCOPE', 'SCHEMA_REGISTRY_OAUTH_TOKEN_URL'],
  ['PII_HMAC', 'PII_HMAC_KEY'],
];

/**
 * TLS settings, each followed by the settings of the addresses that it applies to. A TLS setting is an error if at least one of its
 * addresses is set, and all that are set begin with `http://`.
 */
const TLS_REQUIREMENTS: readonly (readonly [name: Name, ...addresses: Name[]])[] = [
  ['API_CA_FILE', 'API_BASE_URL', 'API_LOGIN_URL'],
  ['SCHEMA_REGISTRY_CA_FILE', 'SCHEMA_REGISTRY_URL'],
  ['SCHEMA_REGISTRY_CERT_FILE', 'SCHEMA_REGISTRY_URL'],
];

/** Settings that each select a different login at the schema registry; only one may be set. */
const REGISTRY_LOGINS: readonly Name[] = [
  'SCHEMA_REGISTRY_USERNAME',
  'SCHEMA_REGISTRY_TOKEN',
  'SCHEMA_REGISTRY_OAUTH_TOKEN_URL',
];

/**
 * Returns problems between settings, such as a setting without another one that it requires, or two settings that contradict each other.
 */
function contradictions(texts: SettingTexts, description: ApiDescription): SettingProblem[] {
  const [login, ...otherLogins] = REGISTRY_LOGINS.filter((name) => texts[name] !== undefined);
  return [
    ...unmetRequirements(texts, REQUIREMENTS),
    ...otherLogins.map((name) => ({ name, advice: `and ${login} are both set: keep one of them` })),
    ...clientCertificateProblems(texts, {
      cert: 'SCHEMA_REGISTRY_CERT_FILE',
      key: 'SCHEMA_REGISTRY_KEY_FILE',
    }),
    ...TLS_REQUIREMENTS.flatMap(([name, ...addresses]) => tlsProblems(texts, name, addresses)),
    ...keyProblems(texts, description),
    ...headerProblems(texts, description),
    ...kafkaProblems(texts),
    ...fieldProblems(texts, description),
  ];
}

function tlsProblems(
  texts: SettingTexts,
  name: Name,
  addresses: readonly Name[],
): SettingProblem[] {
  const set = addresses.flatMap((address) => texts[address] ?? []);
  const isPlain = set.length > 0 && set.every((text) => /^http:/i.test(text));
  if (texts[name] === undefined || !isPlain) return [];
  const [address, ...others] = addresses;
  const orOthers = others.length > 0 ? ` (or ${others.join()})` : '';
  return [{ name, advice: `needs ${address}${orOthers} to begin with https://` }];
}

/** Returns a problem for each credential that is sent in a header, and has characters that a header can't contain. */
function headerProblems(texts: SettingTexts, { auth }: ApiDescription): SettingProblem[] {
  if (typeof auth !== 'object' || !('bearer' in auth || 'header' in auth)) return [];
  const advice = 'has characters that a header can not hold, such as line breaks: check its value';
  return credentialsIn(auth)
    .map((name) => CREDENTIALS[name])
    .filter((setting) => !/^[\t\x20-\x7e]*$/.test(texts[setting] ?? ''))
    .map((name) => ({ name, advice }));
}

function keyProblems(texts: SettingTexts, { lists }: ApiDescription): SettingProblem[] {
  return lists.flatMap((list) => {
    const [name, keys] = [keyFieldsSetting(list.name), singleReadKeys(list)];
    const key = itemsOf(texts[name] ?? '').join();
    if (!keys || key === '' || keys.includes(key)) return [];
    const advice = `must be ${keys.join(' or ')}: single ${list.name} are requested by this field`;
    return [{ name, advice }];
  });
}

/**
 * Prefixes of settings, each with the beginning of the error text about an unknown setting with this prefix. An unknown name is an error,
 * because a misspelled setting would silently have no effect.
 */
const SETTING_FAMILIES = {
  KEY_FIELDS_: 'belongs to no list',
  API_PARAM_: 'belongs to no parameter of the description',
  PII_: 'is not a setting',
} as const;

function unknownSettings(texts: SettingTexts, { names }: SettingTable): SettingProblem[] {
  return Object.entries(SETTING_FAMILIES).flatMap(([prefix, what]) => {
    const known = names.filter((setting) => setting.startsWith(prefix));
    const rule =
      known.length > 0
        ? `the settings that begin with ${prefix} are ${known.join(', ')}`
        : `no setting begins with ${prefix}`;
    return Object.keys(texts)
      .filter((name) => name.startsWith(prefix) && !known.includes(name))
      .map((name) => ({ name, advice: `${what}: ${rule}` }));
  });
}

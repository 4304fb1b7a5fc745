import { clientCertificateProblems } from './client-certificate.ts';
import { fieldProblems } from './field-problems.ts';
import { kafkaProblems } from './kafka-problems.ts';
import { notSet } from './setting-texts.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { aboutSetting, NEEDED, SCHEMA, SECRETS, SETTINGS } from './settings.ts';
import type { Name, Need } from './settings.ts';

/** Returns problems that concern several settings: required ones that are missing, contradictions, and names that no setting has. */
export function settingProblems(texts: SettingTexts, needs: readonly Need[]): SettingProblem[] {
  return [...missingSettings(texts, needs), ...contradictions(texts), ...unknownSettings(texts)];
}

function missingSettings(texts: SettingTexts, needs: readonly Need[]): SettingProblem[] {
  return NEEDED.flatMap((name) => {
    const { needed } = aboutSetting(name);
    if (!needed || !needs.includes(needed.in) || texts[name] !== undefined) return [];
    const orFile = SECRETS.includes(name) ? `, nor ${name}_FILE` : '';
    return [{ name, advice: `is not set${orFile}: ${needed.advice}` }];
  });
}

/** Returns problems of settings that require another setting, contradict it, or do not fit the list that they are for. */
function contradictions(texts: SettingTexts): SettingProblem[] {
  const problems: SettingProblem[] = [];
  const needs = (name: string, others: readonly string[], advice?: string) => {
    if (texts[name] === undefined) return;
    for (const other of others) {
      if (texts[other] === undefined) {
        problems.push({ name, advice: `needs ${other}: ${advice ?? notSet(other)}` });
      }
    }
  };
  needs('SCHEMA_REGISTRY_USERNAME', ['SCHEMA_REGISTRY_PASSWORD']);
  needs('SCHEMA_REGISTRY_PASSWORD', ['SCHEMA_REGISTRY_USERNAME']);
  const OAUTH = 'SCHEMA_REGISTRY_OAUTH_';
  needs(`${OAUTH}TOKEN_URL`, [`${OAUTH}CLIENT_ID`, `${OAUTH}CLIENT_SECRET`]);
  for (const name of ['CLIENT_ID', 'CLIENT_SECRET', 'SCOPE']) {
    needs(`${OAUTH}${name}`, [`${OAUTH}TOKEN_URL`]);
  }
  problems.push(...clientCertificateProblems(texts, REGISTRY_CERTIFICATE), ...severalLogins(texts));
  needs('PII_HMAC', ['PII_HMAC_KEY'], 'it is the key of the HMAC, and is not set');
  const needsTls = (name: string, advice: string, addresses: readonly string[]) => {
    const set = addresses.flatMap((address) => texts[address] ?? []);
    if (texts[name] === undefined || set.length === 0) return;
    if (set.every((text) => /^http:/i.test(text))) problems.push({ name, advice });
  };
  needsTls('API_CA_FILE', 'needs API_BASE_URL (or API_LOGIN_URL) to begin with https://', [
    'API_BASE_URL',
    'API_LOGIN_URL',
  ]);
  for (const file of ['SCHEMA_REGISTRY_CA_FILE', 'SCHEMA_REGISTRY_CERT_FILE']) {
    needsTls(file, 'needs SCHEMA_REGISTRY_URL to begin with https://', ['SCHEMA_REGISTRY_URL']);
  }
  const orderKey = SCHEMA.shape.KEY_FIELDS_ORDERS.safeParse(texts.KEY_FIELDS_ORDERS).data;
  if (orderKey && orderKey.join() !== 'order_number') {
    const advice = 'must be order_number: single orders are requested by it';
    problems.push({ name: 'KEY_FIELDS_ORDERS', advice });
  }
  return [...problems, ...kafkaProblems(texts), ...fieldProblems(texts)];
}

const REGISTRY_CERTIFICATE = {
  cert: 'SCHEMA_REGISTRY_CERT_FILE',
  key: 'SCHEMA_REGISTRY_KEY_FILE',
} as const;

/** Settings that each select a different login at the schema registry; only one may be set. */
const REGISTRY_LOGINS = [
  'SCHEMA_REGISTRY_USERNAME',
  'SCHEMA_REGISTRY_TOKEN',
  'SCHEMA_REGISTRY_OAUTH_TOKEN_URL',
] as const satisfies readonly Name[];

function severalLogins(texts: SettingTexts): SettingProblem[] {
  const [first, ...others] = REGISTRY_LOGINS.filter((name) => texts[name] !== undefined);
  return others.map((name) => ({ name, advice: `and ${first} are both set: keep one of them` }));
}

/** Prefixes of setting families: an unknown name with such a prefix is an error, since a misspelled setting would silently do nothing. */
const SETTING_FAMILIES = { KEY_FIELDS_: 'is not of any list', PII_: 'is not a setting' } as const;

function unknownSettings(texts: SettingTexts): SettingProblem[] {
  return Object.entries(SETTING_FAMILIES).flatMap(([prefix, what]) => {
    const known = SETTINGS.filter((setting) => setting.startsWith(prefix));
    return Object.keys(texts)
      .filter((name) => name.startsWith(prefix) && !known.includes(name))
      .map((name) => ({ name, advice: `${what}: the settings are ${known.join(', ')}` }));
  });
}

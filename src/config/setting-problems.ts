import { clientCertificateProblems } from './client-certificate.ts';
import type { Need } from './config.ts';
import { kafkaProblems } from './kafka-problems.ts';
import { piiProblems } from './pii-problems.ts';
import { notSet, SETTINGS } from './setting-texts.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { SCHEMA } from './settings.ts';
import type { Name } from './settings.ts';
import { volatileProblems } from './volatile-fields-of.ts';

const REQUIRED: Record<Need, Partial<Record<Name, string>>> = {
  api: {
    API_BASE_URL: 'is not set: it is the address of the API, such as https://api.example',
    API_KEY:
      'is not set, nor API_KEY_FILE: the account owner makes a key in the admin settings, on the API access page',
  },
  kafka: { KAFKA_BROKERS: 'is not set: it is host:port of one or more brokers' },
  registry: {
    SCHEMA_REGISTRY_URL:
      'is not set: it is the address of the schema registry, such as http://127.0.0.1:8081',
  },
};

/** Returns problems that concern several settings: required ones that are missing, contradictions, and names that no setting has. */
export function settingProblems(texts: SettingTexts, needs: readonly Need[]): SettingProblem[] {
  return [...missingSettings(texts, needs), ...contradictions(texts), ...unknownSettings(texts)];
}

function missingSettings(texts: SettingTexts, needs: readonly Need[]): SettingProblem[] {
  return [...new Set(needs)]
    .flatMap((need) => Object.entries(REQUIRED[need]))
    .filter(([name]) => texts[name] === undefined)
    .map(([name, advice]) => ({ name, advice }));
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
    const advice = 'must be order_number: single orders are requested by this field';
    problems.push({ name: 'KEY_FIELDS_ORDERS', advice });
  }
  return [...problems, ...kafkaProblems(texts), ...piiProblems(texts), ...volatileProblems(texts)];
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
const SETTING_FAMILIES = { KEY_FIELDS_: 'is of no resource', PII_: 'is no setting' } as const;

function unknownSettings(texts: SettingTexts): SettingProblem[] {
  return Object.entries(SETTING_FAMILIES).flatMap(([prefix, what]) => {
    const known = SETTINGS.filter((setting) => setting.startsWith(prefix));
    return Object.keys(texts)
      .filter((name) => name.startsWith(prefix) && !known.includes(name))
      .map((name) => ({ name, advice: `${what}: there are ${known.join(', ')}` }));
  });
}

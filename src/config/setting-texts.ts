import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parse } from 'dotenv';
import { settingsFileText } from './settings-file.ts';
import { SCHEMA } from './settings.ts';
import type { Name } from './settings.ts';

/** Text of each setting, as written, by name. */
export type SettingTexts = Readonly<Record<string, string | undefined>>;
type Texts = Record<string, string | undefined>;

/** A problem with a setting: its name, and advice that continues a line beginning with that name. */
export interface SettingProblem {
  readonly name: string;
  readonly advice: string;
}

/** Settings that hold a secret. Instead of one, `<name>_FILE` may be set to the path of a file that contains it. */
export const SECRETS = [
  'API_KEY',
  'KAFKA_SSL_KEY_PASSWORD',
  'KAFKA_SASL_PASSWORD',
  'KAFKA_OAUTH_CLIENT_SECRET',
  'SCHEMA_REGISTRY_PASSWORD',
  'SCHEMA_REGISTRY_TOKEN',
  'SCHEMA_REGISTRY_OAUTH_CLIENT_SECRET',
  'SCHEMA_REGISTRY_HEADERS',
  'PII_HMAC_KEY',
  'HTTP_PROXY',
  'HTTPS_PROXY',
] as const satisfies readonly Name[];

/** Returns the text that a required setting is missing; for a secret it also mentions the `_FILE` name. */
export function notSet(name: string): string {
  const isSecret = SECRETS.some((secret) => secret === name);
  return isSecret ? `neither it nor ${name}_FILE is set` : 'it is not set';
}

/** Names of the settings that hold the path of a file; the file's content becomes their value. */
const CONTENTS = [
  'API_CA_FILE',
  'KAFKA_SSL_CA_FILE',
  'KAFKA_SSL_CERT_FILE',
  'KAFKA_SSL_KEY_FILE',
  'SCHEMA_REGISTRY_CA_FILE',
  'SCHEMA_REGISTRY_CERT_FILE',
  'SCHEMA_REGISTRY_KEY_FILE',
] as const satisfies readonly Name[];

/** Settings that other programs also read in lower case; if both are set, the lower-case one is used, as in curl. */
const IN_EITHER_CASE = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'] as const satisfies readonly Name[];

/** Names of all settings, `*_FILE` names of secrets included. */
export const SETTINGS: readonly string[] = [
  ...Object.keys(SCHEMA.shape),
  ...SECRETS.map((name) => `${name}_FILE`),
];

/**
 * Returns the text of all settings: files are read, secrets are read from their `*_FILE` files, and empty values are left out. Adds to
 * `problems` what can't be read.
 */
export function settingTexts(
  env: SettingTexts,
  cwd: string,
  problems: SettingProblem[],
): SettingTexts {
  const read = (name: string, file: string, isPem = false): string | undefined => {
    let bytes: Buffer;
    try {
      bytes = readFileSync(resolve(cwd, file));
    } catch (cause) {
      const code = (cause as NodeJS.ErrnoException).code ?? 'no reason given';
      if (name === '.env' && code === 'ENOENT') return undefined;
      problems.push({
        name,
        advice: `can't be read (${code}): check the path and its permissions`,
      });
      return undefined;
    }
    const found = settingsFileText(bytes);
    if ('text' in found) return found.text;
    if (isPem) return bytes.toString('latin1'); // for example a binary key store: reported later as not PEM
    problems.push({
      name,
      advice: name === '.env' ? found.advice : `names a file that ${found.advice}`,
    });
    return undefined;
  };
  const inFile = present(parse(read('.env', join(cwd, '.env')) ?? ''));
  const inEnv = present(env);
  for (const name of SECRETS) {
    const twin = `${name}_FILE`;
    // A secret and its `*_FILE` name are one setting: if the environment has either, both are ignored in `.env`.
    if (inEnv[name] ?? inEnv[twin]) {
      delete inFile[name];
      delete inFile[twin];
    }
  }
  const texts: Texts = { ...inFile, ...inEnv };
  for (const name of SECRETS) {
    const twin = `${name}_FILE`;
    const file = texts[twin];
    if (file === undefined) continue;
    if (texts[name] !== undefined) {
      problems.push({ name, advice: `and ${twin} are both set: keep one of them` });
      continue;
    }
    // A file that can't be read is already reported; a placeholder keeps its secret from being reported as missing too.
    texts[name] = withoutLineEnd(read(twin, file) ?? '?'.repeat(16));
    if (texts[name] === '') problems.push({ name: twin, advice: 'names a file that is empty' });
  }
  for (const name of CONTENTS) {
    const file = texts[name];
    if (file !== undefined) texts[name] = read(name, file, true);
  }
  return texts;
}

/** Returns the values that are not empty, trimmed. Secrets are not trimmed: they may begin or end with a space. */
function present(texts: SettingTexts): Texts {
  const some: Texts = {};
  for (const [name, text = ''] of Object.entries(texts)) {
    if (text.trim() === '') continue;
    some[name] = SECRETS.some((secret) => secret === name) ? withoutLineEnd(text) : text.trim();
  }
  for (const name of IN_EITHER_CASE) {
    const lower = some[name.toLowerCase()];
    if (lower !== undefined) some[name] = lower;
  }
  return some;
}

function withoutLineEnd(text: string): string {
  return text.replace(/[\r\n]+$/, '');
}

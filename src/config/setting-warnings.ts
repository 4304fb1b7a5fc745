import type { ConfigOptions } from './load-config.ts';
import { clearTextWarnings } from './clear-text.ts';
import type { Config } from './config.ts';
import { describedType } from '../resources/described-type.ts';
import { RULES } from '../resources/resources.ts';
import { SECRETS, SETTINGS, settingTexts } from './setting-texts.ts';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';
import { isQuoted, isSpaced, QUOTED, SPACED } from './settings-file.ts';
import type { FieldPointer } from './settings.ts';
import { HIDING_METHODS } from '../streams/records/personal-fields.ts';
import { volatileItem } from './volatile-fields-of.ts';

/**
 * Returns warnings about settings that are allowed but may be mistakes: a field that the schema does not have, a secret sent in clear text,
 * an unknown name, a value in quotes, white space at either end of a secret.
 *
 * @param source Where the settings of `config` were read from.
 */
export function settingWarnings(
  config: Pick<Config, 'api' | 'kafka' | 'registry' | 'pii' | 'volatileFields'>,
  source: Pick<ConfigOptions<never>, 'env' | 'cwd'>,
): SettingProblem[] {
  const texts = settingTexts(source.env, source.cwd, []);
  return [
    ...unknownNames(texts),
    ...quotedSettings(texts),
    ...spacedSecrets(texts),
    ...clearTextWarnings(config),
    ...undescribed(config),
  ];
}

/** Prefixes of settings. An unknown name with one of them is probably misspelled. */
const OWN_NAMES = ['KAFKA_SSL_', 'KAFKA_SASL_', 'KAFKA_OAUTH_', 'SCHEMA_REGISTRY_'] as const;
/** Variables that Kubernetes sets for a service named `schema-registry`. */
const OF_KUBERNETES = /^SCHEMA_REGISTRY_(SERVICE_(HOST|PORT)|PORT)(_|$)/;

function unknownNames(texts: SettingTexts): SettingProblem[] {
  const isUnknown = (name: string) =>
    OWN_NAMES.some((beginning) => name.startsWith(beginning)) &&
    !SETTINGS.includes(name) &&
    !OF_KUBERNETES.test(name);
  return Object.keys(texts)
    .filter(isUnknown)
    .map((name) => ({ name, advice: 'is not a setting and is ignored: check its spelling' }));
}

function quotedSettings(texts: SettingTexts): SettingProblem[] {
  return SETTINGS.filter((name) => isQuoted(texts[name] ?? '')).map((name) => ({
    name,
    advice: QUOTED,
  }));
}

function spacedSecrets(texts: SettingTexts): SettingProblem[] {
  return SECRETS.filter((name) => isSpaced(texts[name] ?? '')).map((name) => ({
    name,
    advice: SPACED,
  }));
}

function undescribed({ pii, volatileFields }: Pick<Config, 'pii' | 'volatileFields'>) {
  const hidden = HIDING_METHODS.flatMap((way) =>
    pii[way].filter(isUndescribed).map(({ resource, path }) => ({
      name: `PII_${way.toUpperCase()}`,
      advice: `names ${resource}.${path.join('.')}, which is no field of the schema: a misspelled name hides nothing`,
    })),
  );
  const passedOver = volatileFields.filter(isUndescribed).map((field) => ({
    name: 'VOLATILE_FIELDS',
    advice: `names ${volatileItem(field)}, which is no field of the schema: a misspelled name does nothing`,
  }));
  return [...hidden, ...passedOver];
}

function isUndescribed({ resource, path }: FieldPointer): boolean {
  return RULES[resource].described !== undefined && !describedType(resource, path);
}

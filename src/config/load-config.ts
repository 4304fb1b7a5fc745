import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { CellarstreamError } from '../core/errors.ts';
import type { ApiDescription } from '../description/description.ts';
import { parseDescription } from '../description/read-description.ts';
import { WINE } from '../description/wine/wine.ts';
import { configOf } from './config-of.ts';
import type { ConfigWith, Need } from './config.ts';
import { settingProblems } from './setting-problems.ts';
import { isQuoted, QUOTED, settingTexts, unreadable } from './setting-texts.ts';
import type { SettingProblem } from './setting-texts.ts';
import { settingsFor } from './settings.ts';

/** Sources of the settings for {@link loadConfig}, and the groups that are required. */
export interface ConfigOptions<N extends Need> {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder in which `.env` is looked for, and the base of relative paths. */
  readonly cwd: string;
  /** Groups of settings, such as `kafka`, whose required settings must be set. Default none. */
  readonly needs?: readonly N[];
  /** Prefix of the topics that the account shares with the other accounts of a fleet. Default: the account's own prefix. */
  readonly sharedPrefix?: string;
  /** Description of the API. Default: read from the file that `API_DESCRIPTION` names; without this setting, the built-in one. */
  readonly description?: ApiDescription;
}

/** Environment and working directory that settings are read from. */
export type SettingsSource = Pick<ConfigOptions<never>, 'env' | 'cwd'>;

/**
 * Reads the settings from the environment, and from `.env` those that the environment does not set. An empty value counts as unset. A
 * secret may be stored in a file: set `<name>_FILE` to the path of that file.
 *
 * @throws CellarstreamError `SETTINGS`, with one line for each problem. No line contains the value of a secret, an address, or the content
 * of a secret's file.
 *
 * @example
 * ```ts
 * import { CellarstreamError, loadConfig } from 'cellarstream';
 *
 * try {
 *   const { env } = process;
 *   const { api, kafka } = loadConfig({ env, cwd: process.cwd(), needs: ['api', 'kafka'] });
 *   console.log(api.baseUrl, kafka.brokers);
 * } catch (error) {
 *   if (!(error instanceof CellarstreamError)) throw error;
 *   console.error(error.message); // a line for each setting that is wrong
 *   process.exitCode = 2;
 * }
 * ```
 */
export function loadConfig<N extends Need = never>(options: ConfigOptions<N>): ConfigWith<N> {
  const { env, cwd, needs = [], sharedPrefix } = options;
  const problems: SettingProblem[] = [];
  const texts = settingTexts(env, cwd, problems);
  // Throws if the description has mistakes: then only these are reported.
  const description = options.description ?? descriptionOf(options, texts);
  const parsed = settingsFor(description).schema.safeParse(texts);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const name = String(path[0]);
    const advice = isQuoted(texts[name] ?? '') ? `${message}; it ${QUOTED}` : message;
    problems.push({ name, advice });
  }
  problems.push(...settingProblems(texts, needs, description));
  if (!parsed.success || problems.length > 0) throw settingsError(problems);
  return deepFreeze(configOf(parsed.data, description, cwd, sharedPrefix)) as ConfigWith<N>;
}

/**
 * Reads the description of the API that `API_DESCRIPTION` names; without this setting, returns the built-in one.
 *
 * @throws CellarstreamError `SETTINGS`, with one line for each mistake in the file, or a line that says why the file can't be read.
 */
export function descriptionOf(
  { env, cwd }: SettingsSource,
  texts = settingTexts(env, cwd, []),
): ApiDescription {
  const { API_DESCRIPTION: file } = texts;
  if (file === undefined) return WINE;
  const path = resolve(cwd, file);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    // The error does not contain the path, because the setting may hold a secret by mistake.
    throw settingsError([{ name: 'API_DESCRIPTION', advice: unreadable(error) }]);
  }
  return parseDescription(text, path);
}

function settingsError(problems: readonly SettingProblem[]): CellarstreamError {
  const count = problems.length === 1 ? '1 setting is' : `${problems.length} settings are`;
  const lines = problems.map(({ name, advice }) => `\n- ${name} ${advice}`);
  const settings = problems.map(({ name }) => name).join(',');
  return new CellarstreamError('SETTINGS', `${count} wrong:${lines.join('')}`, {
    context: { settings },
  });
}

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part === 'object' && part !== null) deepFreeze(part);
  }
  return Object.freeze(value);
}

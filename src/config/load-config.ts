import { CellarstreamError } from '../core/errors.ts';
import { configOf } from './config-of.ts';
import type { ConfigWith, Need } from './config.ts';
import { settingProblems } from './setting-problems.ts';
import { settingTexts } from './setting-texts.ts';
import type { SettingProblem } from './setting-texts.ts';
import { isQuoted, QUOTED } from './settings-file.ts';
import { SCHEMA } from './settings.ts';

/** Where {@link loadConfig} finds the settings, and which it insists on. */
export interface ConfigOptions<N extends Need> {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where `.env` is looked for, and what relative paths start from. */
  readonly cwd: string;
  /** Groups whose required settings must be there. Default none. */
  readonly needs?: readonly N[];
  /** Of what the account shares with others. Default its own prefix. */
  readonly sharedPrefix?: string;
}

/**
 * Reads the settings from the environment, and from `.env` for those that it leaves open. Empty
 * text counts as unset. A secret may be in a file that its `*_FILE` twin names.
 *
 * @throws CellarstreamError `SETTINGS`, with a line for everything that is wrong; no line holds the
 * value of a secret, of an address or of a path's content.
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
  const parsed = SCHEMA.safeParse(texts);
  for (const { path, message } of parsed.error?.issues ?? []) {
    const name = String(path[0]);
    problems.push({
      name,
      advice: isQuoted(texts[name] ?? '') ? `${message}; it ${QUOTED}` : message,
    });
  }
  problems.push(...settingProblems(texts, needs));
  if (!parsed.success || problems.length > 0) throw settingsError(problems);
  return deepFreeze(configOf(parsed.data, cwd, sharedPrefix)) as ConfigWith<N>;
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

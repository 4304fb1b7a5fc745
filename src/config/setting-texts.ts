import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { parse } from 'dotenv';
import { CONTENTS, SECRETS } from './settings.ts';
import type { Name } from './settings.ts';

/** Text of each setting by name, before it is parsed; undefined for a setting that is not set. */
export type SettingTexts = Readonly<Record<string, string | undefined>>;
type Texts = Record<string, string | undefined>;

/** A problem with a setting: its name, and advice that continues a line beginning with that name. */
export interface SettingProblem {
  readonly name: string;
  readonly advice: string;
}

/** A setting (`name`) that is useless without another setting (`required`). */
export type Requirement = readonly [name: string, required: string];

/** Returns a problem for each setting that is set without the setting that it requires. */
export function unmetRequirements(
  texts: SettingTexts,
  requirements: readonly Requirement[],
): SettingProblem[] {
  return requirements
    .filter(([name, required]) => texts[name] !== undefined && texts[required] === undefined)
    .map(([name, required]) => {
      const notSet = isSecret(required)
        ? `neither it nor ${required}_FILE is set`
        : 'it is not set';
      return { name, advice: `needs ${required}: ${notSet}` };
    });
}

/** Returns the advice about a setting whose file can't be read. */
export function unreadable(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? 'no reason given';
  return `can't be read (${code}): check the path and its permissions`;
}

/** Settings that other programs also read in lower case; if both are set, the lower-case one is used, as in curl. */
const IN_EITHER_CASE = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'] as const satisfies readonly Name[];

/**
 * Returns the text of all settings that are not empty, including the content of the files of secrets and certificates. Adds to `problems`
 * each file that can't be read or used, and each secret set both directly and by `*_FILE`.
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
      const isOptional = name === '.env' && (cause as NodeJS.ErrnoException).code === 'ENOENT';
      if (!isOptional) problems.push({ name, advice: unreadable(cause) });
      return undefined;
    }
    const found = settingsFileText(bytes);
    if ('text' in found) return found.text;
    if (isPem) return bytes.toString('latin1'); // for example a binary key store: reported later as not PEM
    const advice = name === '.env' ? found.advice : `names a file that ${found.advice}`;
    problems.push({ name, advice });
    return undefined;
  };
  const texts = overlaid(present(parse(read('.env', '.env') ?? '')), present(env));
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

/**
 * Returns the settings of two sources, of which `over` takes precedence. A secret and its `*_FILE` name are one setting: if `over` sets
 * either of them, both are ignored in `base`.
 */
export function overlaid(base: SettingTexts, over: SettingTexts): Texts {
  const texts = { ...base, ...over };
  for (const name of SECRETS) {
    const twin = `${name}_FILE`;
    if (over[name] || over[twin]) Object.assign(texts, { [name]: over[name], [twin]: over[twin] });
  }
  return texts;
}

/**
 * Returns the settings with a value that is not empty. White space around values is removed. A secret may begin or end with a space: only
 * its final line breaks are removed.
 */
function present(texts: SettingTexts): Texts {
  const some: Texts = {};
  for (const [name, text = ''] of Object.entries(texts)) {
    if (text.trim() === '') continue;
    some[name] = isSecret(name) ? withoutLineEnd(text) : text.trim();
  }
  for (const name of IN_EITHER_CASE) {
    const lower = some[name.toLowerCase()];
    if (lower !== undefined) some[name] = lower;
  }
  return some;
}

export function isSecret(name: string): boolean {
  return SECRETS.some((secret) => secret === name);
}

function withoutLineEnd(text: string): string {
  return text.replace(/[\r\n]+$/, '');
}

const UTF16_MARKS = [Buffer.from([0xff, 0xfe]), Buffer.from([0xfe, 0xff])];
const SAVE_AS =
  'save the file as UTF-8 without a byte order mark (in Windows PowerShell: Out-File -Encoding ascii, if all characters are ASCII)';

/**
 * Decodes a settings file: `.env`, an account's file, a secret, certificates. Encodings other than UTF-8 are refused, because decoding them
 * as UTF-8 would yield a wrong secret.
 *
 * @returns The text or, if the file is not UTF-8, advice that continues a line beginning with the setting's name.
 */
export function settingsFileText(
  bytes: Buffer,
): { readonly text: string } | { readonly advice: string } {
  // UTF-16 without a byte order mark is valid UTF-8, with a zero in every other byte.
  if (UTF16_MARKS.some((mark) => bytes.subarray(0, 2).equals(mark)) || bytes.includes(0)) {
    return { advice: `is not UTF-8 but UTF-16 or binary: ${SAVE_AS}` };
  }
  if (!isUtf8(bytes)) return { advice: `is not UTF-8: ${SAVE_AS}` };
  return { text: bytes.toString('utf8').replace(/^\ufeff/, '') };
}

/** Whether a value is still in quotes, which a shell or `.env` would have removed. `docker run --env-file` does not remove quotes. */
export function isQuoted(text: string): boolean {
  return /^(["']).*\1$/s.test(text.trim());
}

/** Advice for a setting whose value is in quotes; see {@link isQuoted}. */
export const QUOTED =
  'is in quotes: docker run --env-file and Kubernetes keep them, so remove them there';

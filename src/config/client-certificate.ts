import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { SettingProblem, SettingTexts } from './setting-texts.ts';

/** Names of the settings that hold a client certificate, its private key and the private key's password. */
export interface ClientCertificateSettings {
  readonly cert: string;
  readonly key: string;
  /** Setting that holds the private key's password; undefined if there is no such setting. */
  readonly password?: string;
}

/**
 * Returns reasons why a client certificate can't be used: the certificate or its private key is missing, the private key can't be decrypted
 * or belongs to another certificate, or the certificate is expired or not yet valid.
 */
export function clientCertificateProblems(
  texts: SettingTexts,
  settings: ClientCertificateSettings,
  now = Date.now(),
): SettingProblem[] {
  const { cert, key, password } = settings;
  const [certText, keyText] = [texts[cert], texts[key]];
  const hasPassword = password !== undefined && texts[password] !== undefined;
  if (certText === undefined || keyText === undefined) {
    const missing = (name: string, needs: string) => ({
      name,
      advice: `needs ${needs}: it is not set`,
    });
    return [
      ...(certText !== undefined ? [missing(cert, key)] : []),
      ...(keyText !== undefined ? [missing(key, cert)] : []),
      ...(hasPassword && keyText === undefined ? [missing(password, key)] : []),
    ];
  }
  const certificate = resultOrError(() => new X509Certificate(certText));
  const keyFound = resultOrError(() =>
    privateKey(keyText, hasPassword ? texts[password] : undefined),
  );
  if (certificate instanceof Error || !isPrivateKey(keyText)) return []; // reported as not PEM
  const problems = datesProblems(certificate, cert, now);
  if (keyFound instanceof Error)
    return [...problems, keyProblem(keyFound, keyText, settings, hasPassword)];
  if (certificate.checkPrivateKey(keyFound)) return problems;
  const advice = `is not the key of the first certificate in ${cert}: the two must be a pair`;
  return [...problems, { name: key, advice }];
}

function privateKey(key: string, passphrase: string | undefined): KeyObject {
  return createPrivateKey({ key, ...(passphrase !== undefined && { passphrase }) });
}

function isPrivateKey(text: string): boolean {
  return /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(text);
}

function keyProblem(
  error: Error,
  keyText: string,
  { key, password }: ClientCertificateSettings,
  hasPassword: boolean,
): SettingProblem {
  const code = (error as NodeJS.ErrnoException).code ?? 'no reason given';
  if (keyText.includes('ENCRYPTED') && !hasPassword) {
    const toDo = password
      ? `set ${password}`
      : 'decrypt it, as with openssl pkey -in FILE -out NEW_FILE';
    return { name: key, advice: `is encrypted: ${toDo}` };
  }
  if (code === 'ERR_OSSL_BAD_DECRYPT' && password) {
    return { name: password, advice: `is not the password of ${key}` };
  }
  const advice = `has no private key that Node can read (${code}): convert it with openssl pkey -in FILE`;
  return { name: key, advice };
}

function datesProblems(certificate: X509Certificate, name: string, now: number): SettingProblem[] {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  if (now > to) {
    return [{ name, advice: `has expired on ${dayOf(to)}: it must be renewed` }];
  }
  if (now < from) {
    return [
      { name, advice: `is not valid before ${dayOf(from)}: check the clock of this machine` },
    ];
  }
  return [];
}

function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

function resultOrError<T>(work: () => T): T | Error {
  try {
    return work();
  } catch (error) {
    return error as Error;
  }
}

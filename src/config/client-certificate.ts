import { createPrivateKey, X509Certificate } from 'node:crypto';
import { unmetRequirements } from './setting-texts.ts';
import type { Requirement, SettingProblem, SettingTexts } from './setting-texts.ts';

/** Names of the settings that hold a client certificate, its private key and the private key's password. */
export interface ClientCertificateSettings {
  readonly cert: string;
  readonly key: string;
  /** Setting that holds the private key's password; undefined if there is no such setting. */
  readonly password?: string;
}

/**
 * Returns problems with a client certificate and its private key, such as an expired certificate or a missing key. Returns none if no
 * setting of the certificate is set.
 */
export function clientCertificateProblems(
  texts: SettingTexts,
  settings: ClientCertificateSettings,
): SettingProblem[] {
  const { cert, key, password } = settings;
  const [certText, keyText] = [texts[cert], texts[key]];
  if (certText === undefined || keyText === undefined) {
    const pair: Requirement = [cert, key];
    const ofPassword: Requirement[] = password ? [[password, key]] : [];
    return unmetRequirements(texts, [pair, [key, cert], ...ofPassword]);
  }
  const passphrase = password && texts[password];
  const certificate = resultOrError(() => new X509Certificate(certText));
  const keyFound = resultOrError(() =>
    createPrivateKey({ key: keyText, ...(passphrase !== undefined && { passphrase }) }),
  );
  const isPrivateKey = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/.test(keyText);
  if (certificate instanceof Error || !isPrivateKey) return []; // reported as not PEM
  const problems = datesProblems(certificate, cert);
  if (keyFound instanceof Error) {
    return [...problems, keyProblem(keyFound, keyText, settings, passphrase !== undefined)];
  }
  if (certificate.checkPrivateKey(keyFound)) return problems;
  const advice = `is not the key of the first certificate in ${cert}: the two must be a pair`;
  return [...problems, { name: key, advice }];
}

function keyProblem(
  error: Error,
  keyText: string,
  { key, password }: ClientCertificateSettings,
  hasPassword: boolean,
): SettingProblem {
  const code = (error as NodeJS.ErrnoException).code ?? 'no reason given';
  const isEncrypted = keyText.includes('ENCRYPTED');
  if (isEncrypted && !hasPassword) {
    const toDo = password
      ? `set ${password}`
      : 'decrypt it, as with openssl pkey -in FILE -out NEW_FILE';
    return { name: key, advice: `is encrypted: ${toDo}` };
  }
  if (code === 'ERR_OSSL_BAD_DECRYPT' && password) {
    return { name: password, advice: `is not the password of ${key}` };
  }
  // One wrong password in some 300 seems to decrypt the key, and the result is no key.
  if (isEncrypted && password) {
    const advice = `can't be read with ${password} (${code}): check the password; if it is right, convert the key with openssl pkey -in FILE`;
    return { name: key, advice };
  }
  const advice = `has no private key that Node can read (${code}): convert it with openssl pkey -in FILE`;
  return { name: key, advice };
}

function datesProblems(certificate: X509Certificate, name: string): SettingProblem[] {
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)];
  const now = Date.now();
  if (now > to) return [{ name, advice: `has expired on ${dayOf(to)}: it must be renewed` }];
  if (now < from)
    return [
      { name, advice: `is not valid before ${dayOf(from)}: check the clock of this machine` },
    ];
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

import { createHash } from 'node:crypto';
import type { ApiConfig } from './config.ts';

/**
 * Length of a digest, in bytes. Among ten thousand keys the probability of a collision is below one in a million, and a digest reveals
 * nothing about a random key.
 */
export const KEY_DIGEST_BYTES = 6;

/**
 * Returns a digest of an account's credentials and its API's address, in hexadecimal. It shows whether two accounts have both in common,
 * without revealing the credentials.
 */
export function keyDigest(api: Pick<ApiConfig, 'baseUrl' | 'credentials'>): string {
  const digest = createHash('sha256').update(credentialText(api)).digest();
  return digest.toString('hex', 0, KEY_DIGEST_BYTES);
}

/** Returns a text that is equal for accounts with the same credentials at the same address. It contains the credentials: never log it. */
export function credentialText({
  baseUrl,
  credentials,
}: Pick<ApiConfig, 'baseUrl' | 'credentials'>): string {
  return [baseUrl, ...Object.values(credentials).map((each) => each.reveal())].join(' ');
}

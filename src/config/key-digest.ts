import { createHash } from 'node:crypto';
import type { ApiConfig } from './config.ts';

/**
 * Length of a digest, in bytes. Among ten thousand keys the probability of a collision is below one in a million, and a digest reveals
 * nothing about a random key.
 */
export const KEY_DIGEST_BYTES = 6;

/**
 * Returns a digest of an API key and its API's address, in hexadecimal. It shows whether two accounts use the same API key, without
 * revealing the API key.
 */
export function keyDigest({ baseUrl, key }: Pick<ApiConfig, 'baseUrl' | 'key'>): string {
  const digest = createHash('sha256').update(`${baseUrl} ${key.reveal()}`).digest();
  return digest.subarray(0, KEY_DIGEST_BYTES).toString('hex');
}

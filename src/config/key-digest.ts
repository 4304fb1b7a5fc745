import { createHash } from 'node:crypto';
import type { ApiConfig } from './config.ts';

/** Among ten thousand keys two look alike once in millions of fleets; of a key that nobody could guess nothing is given away. */
export const KEY_DIGEST_BYTES = 6;

/** Tells whether two accounts have one key at one API, without the key: as hexadecimal digits. */
export function keyDigest({ baseUrl, key }: Pick<ApiConfig, 'baseUrl' | 'key'>): string {
  const digest = createHash('sha256').update(`${baseUrl} ${key.reveal()}`).digest();
  return digest.subarray(0, KEY_DIGEST_BYTES).toString('hex');
}

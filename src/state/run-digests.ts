// Keyed digests of runs (adjacent records of a page, recognized by their bytes), with a secret for each image store.

import { createCipheriv, randomBytes } from 'node:crypto';

/** Size in bytes of the secret with which an image store computes its digests. */
const SECRET_BYTES = 16;

/** Creates the random secret with which a new image store computes its digests. */
export const newSecret = (): Buffer => randomBytes(SECRET_BYTES);

/**
 * Returns a function that computes the digest of the bytes of a run (adjacent records of a page): GMAC keyed with the image store's secret,
 * 16 bytes, as `latin1`. For 200 KB it takes a seventh of the time of SHA-256, which was a fifth of the cost of unchanged records. Without
 * the secret, texts with the same digest can't be constructed: the chance is 2^-114 for each pair of that length. Known digests would make
 * it possible, so they never leave the state folder.
 */
export function runDigests(secret: Buffer): (bytes: Buffer) => string {
  return (bytes) => {
    const mac = createCipheriv('aes-128-gcm', secret, NONCE);
    mac.setAAD(bytes);
    mac.final();
    return mac.getAuthTag().toString('latin1');
  };
}

/** Nonce of GMAC. A constant one is safe only because digests are never disclosed. */
const NONCE = Buffer.alloc(12);

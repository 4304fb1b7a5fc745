// The tokens of an account.

import { createHash } from 'node:crypto';
import { decodeJwt, errors, jwtVerify, SignJWT } from 'jose';
import type { Settings } from './options.ts';

/** Gives out the tokens of one account and knows its own: JWTs, signed with HS256. */
export class Tokens {
  readonly #account: string;
  readonly #settings: Settings;
  readonly #clock: () => number;
  #revoked = 0;
  #issued = 0;
  /** When tokens become valid that are not yet, by `jti`, in epoch ms. */
  readonly #young = new Map<string, number>();

  /** @param clock the server's clock, in epoch ms. */
  constructor(account: string, settings: Settings, clock: () => number) {
    this.#account = account;
    this.#settings = settings;
    this.#clock = clock;
  }

  /** A token with `sub` (the account), `jti`, `iat` and, unless the readings say otherwise, `exp`. */
  async issue(): Promise<string> {
    const now = this.#clock();
    const token = new SignJWT({})
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
      .setSubject(this.#account)
      .setJti(this.#newId(now))
      .setIssuedAt(Math.floor(now / 1_000));
    if (this.#settings.readings.expClaim) token.setExpirationTime(this.#expiry(now));
    return token.sign(this.#secret());
  }

  /** Whether the token is ours, valid already, not expired and not revoked. */
  async accepts(token: string): Promise<boolean> {
    const now = this.#clock();
    try {
      const { payload } = await jwtVerify(token, this.#secret(), {
        algorithms: ['HS256'],
        // Expiry is checked below, to the ms and without the claim too.
        clockTolerance: Number.MAX_SAFE_INTEGER,
      });
      const expiry = payload.exp ?? this.#expiry((payload.iat ?? 0) * 1_000);
      return now < expiry * 1_000 && now >= (this.#young.get(String(payload.jti)) ?? 0);
    } catch (error) {
      if (error instanceof errors.JOSEError) return false;
      throw error;
    }
  }

  /** No token given out until now is good any longer. */
  revoke(): void {
    this.#revoked++;
  }

  #newId(now: number): string {
    const id = String(++this.#issued);
    for (const [other, validFrom] of this.#young) if (validFrom <= now) this.#young.delete(other);
    if (this.#settings.tokenLagMs > 0) this.#young.set(id, now + this.#settings.tokenLagMs);
    return id;
  }

  /** Seconds since 1970, rounded up: JWTs hold whole seconds. */
  #expiry(from: number): number {
    return Math.ceil((from + this.#settings.tokenLifeMs) / 1_000);
  }

  #secret(): Uint8Array {
    return createHash('sha256').update(`sandbox/${this.#settings.seed}/${this.#revoked}`).digest();
  }
}

/** Whose token this claims to be, which proves nothing; undefined when it is no token at all. */
export function accountIn(token: string): string | undefined {
  try {
    return decodeJwt(token).sub;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

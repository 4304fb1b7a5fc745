import { createHash } from 'node:crypto';
import { decodeJwt, errors, jwtVerify, SignJWT } from 'jose';
import type { SandboxSettings } from './options.ts';

/** Issues, verifies and revokes the tokens of one account: JWTs, signed with HS256. */
export class Tokens {
  readonly #account: string;
  readonly #settings: SandboxSettings;
  readonly #clock: () => number;
  #revoked = 0;
  #issued = 0;
  /** Time from which a token is accepted, in epoch ms, by the token's `jti`. A token that is not in the map is accepted at once. */
  readonly #young = new Map<string, number>();

  /** @param clock The server's clock, in epoch ms. */
  constructor(account: string, settings: SandboxSettings, clock: () => number) {
    this.#account = account;
    this.#settings = settings;
    this.#clock = clock;
  }

  /** Issues a token with the claims `sub` (the account), `jti`, `iat` and, unless `readings.expClaim` is false, `exp`. */
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

  /** Whether a token was issued by this account, is already accepted (see `tokenLagMs`), and is neither expired nor revoked. */
  async accepts(token: string): Promise<boolean> {
    const now = this.#clock();
    try {
      const { payload } = await jwtVerify(token, this.#secret(), {
        algorithms: ['HS256'],
        // Expiry is checked below, exact to the ms, and also for tokens without `exp`.
        clockTolerance: Number.MAX_SAFE_INTEGER,
      });
      const expiry = payload.exp ?? this.#expiry((payload.iat ?? 0) * 1_000);
      return now < expiry * 1_000 && now >= (this.#young.get(String(payload.jti)) ?? 0);
    } catch (error) {
      if (error instanceof errors.JOSEError) return false;
      throw error;
    }
  }

  /** Revokes every token that has been issued so far. */
  revoke(): void {
    this.#revoked++;
  }

  #newId(now: number): string {
    const id = String(++this.#issued);
    for (const [other, validFrom] of this.#young) if (validFrom <= now) this.#young.delete(other);
    if (this.#settings.tokenLagMs > 0) this.#young.set(id, now + this.#settings.tokenLagMs);
    return id;
  }

  /** Returns the expiry of a token issued at `from` (epoch ms), in seconds since 1970, rounded up. */
  #expiry(from: number): number {
    return Math.ceil((from + this.#settings.tokenLifeMs) / 1_000);
  }

  #secret(): Uint8Array {
    return createHash('sha256').update(`sandbox/${this.#settings.seed}/${this.#revoked}`).digest();
  }
}

/**
 * Returns the name of the account that a token claims to belong to, without verifying the token; undefined if the token is malformed or
 * names none.
 */
export function accountIn(token: string): string | undefined {
  try {
    return decodeJwt(token).sub;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

import { createHash } from 'node:crypto';
import { closeSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { CellarstreamError } from '../core/errors.ts';
import { objectIn } from '../core/http-text.ts';
import { tryLockFile } from './lock.ts';
import { folderError, inFolder, makeFolder, replaceDurably } from './state-files.ts';

/**
 * File with the newest refresh token of an account, readable only for the user of the service. A new token is written to disk at once,
 * because servers that rotate refresh tokens refuse all older ones. The file is locked for each request for a token, so that processes with
 * the same folder continue one chain of tokens.
 */
export class RefreshTokenFile {
  readonly #file: string;
  #lock: number | undefined;
  /** SHA-256 of the refresh token in the settings. A stored token is used only if it comes from that token by one or more renewals. */
  #first = '';
  /**
   * Newest refresh token (`token`) while it is not written to the file yet. `first`: SHA-256 of the token in the settings, from which
   * `token` comes by one or more renewals.
   */
  #unwritten: { readonly first: string; readonly token: string } | undefined;
  #idle = Promise.resolve();
  #becomeIdle = () => undefined as void;

  constructor(file: string) {
    this.#file = file;
  }

  /** Resolves once no request for a token is in flight. */
  get idle(): Promise<void> {
    return this.#idle;
  }

  /**
   * Locks the file and returns the newest refresh token: `first` (the token of the settings), or the token that replaced it.
   *
   * @throws CellarstreamError `STATE_FOLDER` if the folder or file can't be accessed, or if another process is renewing the token.
   */
  begin(first: string): string {
    this.#first = createHash('sha256').update(first).digest('hex');
    const folder = dirname(this.#file);
    const lock = inFolder(folder, () => {
      makeFolder(folder);
      return tryLockFile(`${this.#file}.lock`);
    });
    if (lock === undefined)
      throw new CellarstreamError(
        'STATE_FOLDER',
        `the access token is being renewed by another process with the same state folder ${folder}: this process waits, then tries again by itself`,
      );
    this.#lock = lock;
    this.#idle = new Promise((resolve) => (this.#becomeIdle = resolve));
    const newest = this.#unwritten ?? this.#read();
    return newest?.first === this.#first ? newest.token : first;
  }

  /**
   * Stores the newest refresh token, which replaces all others. When the call returns, the disk has it.
   *
   * @throws CellarstreamError `STATE_FOLDER` if that fails. The token is then held in memory.
   */
  replace(token: string): void {
    const newest = { first: this.#first, token };
    this.#unwritten = newest;
    inFolder(dirname(this.#file), () => replaceDurably(this.#file, JSON.stringify(newest)));
    this.#unwritten = undefined;
  }

  end(): void {
    if (this.#lock !== undefined) closeSync(this.#lock);
    this.#lock = undefined;
    this.#becomeIdle();
  }

  #read(): { readonly first: unknown; readonly token: string } | undefined {
    let text: string;
    try {
      text = readFileSync(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      this.end();
      throw folderError(dirname(this.#file), error);
    }
    const { first, token } = objectIn(text) ?? {};
    return typeof token === 'string' ? { first, token } : undefined;
  }
}

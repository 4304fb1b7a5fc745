import { defer, of, Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import type { CertifyJob } from '../../account/signal-jobs.ts';

/**
 * Pending requests for a list's certificate (a message with count and digest of its records, published after a full scan). A request is
 * answered by the first full scan that begins later.
 */
export class CertificateRequests {
  readonly #waiting: CertifyJob[] = [];
  readonly #inScan: CertifyJob[] = [];
  readonly #arrived$ = new Subject<void>();

  /** Emits when a full scan should begin because a request for a certificate is waiting; on subscription if one is waiting already. */
  readonly startNow$: Observable<unknown> = defer(() =>
    this.#waiting.length > 0 ? of(undefined) : this.#arrived$,
  );
  /** Emits when a full scan should be faster because a request for a certificate is pending; on subscription if one is pending already. */
  readonly urgent$: Observable<unknown> = defer(() =>
    this.hasPending() ? of(undefined) : this.#arrived$,
  );

  hasPending(): boolean {
    return this.#waiting.length + this.#inScan.length > 0;
  }

  add(request: CertifyJob): void {
    this.#waiting.push(request);
    this.#arrived$.next();
  }

  /**
   * Assigns all waiting certificate requests to the full scan that begins, so that {@link scanEnded} returns them. To be called when a full
   * scan begins.
   */
  scanStarted(): void {
    this.#inScan.push(...this.#waiting.splice(0));
  }

  /**
   * Returns the certificate requests that the full scan fulfils, which are those that had arrived before it began. To be called when the
   * scan ends.
   */
  scanEnded(): readonly CertifyJob[] {
    return this.#inScan.splice(0);
  }
}

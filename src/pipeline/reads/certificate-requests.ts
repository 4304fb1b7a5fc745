import { defer, of, Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import type { CertifyJob } from '../../account/signal-jobs.ts';

/**
 * Pending requests for certificates of a list. A request first waits for a full scan to begin (after `add`), then for the end of that scan
 * (after `scanStarted`). The certificate of the scan answers the request (`scanEnded`).
 */
export class CertificateRequests {
  #waiting: readonly CertifyJob[] = [];
  #inScan: readonly CertifyJob[] = [];
  readonly #arrived$ = new Subject<void>();

  /** Emits on subscription if a request for a certificate waits for a full scan to begin; else when the next such request arrives. */
  readonly startNow$: Observable<unknown> = defer(() =>
    this.#waiting.length > 0 ? of(undefined) : this.#arrived$,
  );
  /**
   * Emits on subscription if a request for a certificate waits for a full scan to begin or end; else when the next such request arrives.
   */
  readonly urgent$: Observable<unknown> = defer(() =>
    this.hasPending() ? of(undefined) : this.#arrived$,
  );

  hasPending(): boolean {
    return this.#waiting.length + this.#inScan.length > 0;
  }

  add(request: CertifyJob): void {
    this.#waiting = [...this.#waiting, request];
    this.#arrived$.next();
  }

  /** To be called when a full scan begins. */
  scanStarted(): void {
    this.#inScan = [...this.#inScan, ...this.#waiting];
    this.#waiting = [];
  }

  /** To be called when the full scan ends. Returns the requests that arrived before the scan began: the scan's certificate answers them. */
  scanEnded(): readonly CertifyJob[] {
    const ended = this.#inScan;
    this.#inScan = [];
    return ended;
  }
}

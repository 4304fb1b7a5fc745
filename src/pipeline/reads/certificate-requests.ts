import { defer, of, Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import type { CertifyJob } from '../../account/signal-jobs.ts';

/** Pending requests for certificates of a list. A request is answered by the first full scan that begins after its arrival. */
export interface CertificateRequests {
  /** Emits on subscription if a request for a certificate waits for a full scan to begin; else when the next request arrives. */
  readonly startNow$: Observable<unknown>;
  /** Emits on subscription if a request for a certificate waits for a full scan to begin or to end; else when the next request arrives. */
  readonly urgent$: Observable<unknown>;
  /** Whether a request for a certificate waits for a full scan to begin or to end. */
  readonly hasPending: () => boolean;
  readonly add: (asked: CertifyJob) => void;
  /** To be called when a full scan begins. */
  readonly scanStarted: () => void;
  /** To be called when the full scan ends. Returns the requests that arrived before it began, which its certificate answers. */
  readonly scanEnded: () => readonly CertifyJob[];
}

export function certificateRequests(): CertificateRequests {
  let waiting: readonly CertifyJob[] = [];
  let inScan: readonly CertifyJob[] = [];
  const asked$ = new Subject<void>();
  const hasPending = () => waiting.length + inScan.length > 0;
  return {
    startNow$: defer(() => (waiting.length > 0 ? of(undefined) : asked$)),
    urgent$: defer(() => (hasPending() ? of(undefined) : asked$)),
    hasPending,
    add: (asked) => {
      waiting = [...waiting, asked];
      asked$.next();
    },
    scanStarted: () => {
      inScan = [...inScan, ...waiting];
      waiting = [];
    },
    scanEnded: () => {
      const ended = inScan;
      inScan = [];
      return ended;
    },
  };
}

import { defer, of, Subject } from 'rxjs';
import type { Observable } from 'rxjs';
import type { CertifyAsked } from '../../account/resync-requests.ts';

/** Requests for certificates of a list: each is answered by the first complete reading that begins after it came. */
export interface AskedReadings {
  /** Emits as long as one waits for a reading to begin. */
  readonly hurry$: Observable<unknown>;
  /** Emits as long as one waits for a reading to begin or to end. */
  readonly haste$: Observable<unknown>;
  /** Whether one waits for either. */
  readonly isAsked: () => boolean;
  readonly ask: (asked: CertifyAsked) => void;
  /** A reading begins. */
  readonly begin: () => void;
  /** It has ended: those that it answers. */
  readonly end: () => readonly CertifyAsked[];
}

export function askedReadings(): AskedReadings {
  let waiting: readonly CertifyAsked[] = [];
  let begun: readonly CertifyAsked[] = [];
  const asked$ = new Subject<void>();
  const isAsked = () => waiting.length + begun.length > 0;
  return {
    hurry$: defer(() => (waiting.length > 0 ? of(undefined) : asked$)),
    haste$: defer(() => (isAsked() ? of(undefined) : asked$)),
    isAsked,
    ask: (asked) => {
      waiting = [...waiting, asked];
      asked$.next();
    },
    begin: () => {
      begun = [...begun, ...waiting];
      waiting = [];
    },
    end: () => {
      const ended = begun;
      begun = [];
      return ended;
    },
  };
}

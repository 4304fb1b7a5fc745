// Credentials that are sent with every request: the source of requests' authorization for an API without a login.

import { asyncScheduler, concat, NEVER, of } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import { credentialWords } from '../../description/credentials.ts';
import type { ApiDescription } from '../../description/description.ts';
import type { Variables } from '../../description/template.ts';
import { RETRY_AFTER } from '../flow/backoff.ts';
import { authorization, rejection } from './authorization.ts';
import { KEY_PATIENCE_MS } from './login.ts';
import type { Token } from './login.ts';
import { isTooOld, TokenEvidence } from './token-evidence.ts';
import type { TokenOutcome, TokenUse } from './token-evidence.ts';
import { FINAL, GO_ON } from './token-life.ts';
import type { TokenVerdict } from './token-life.ts';
import type { TokenSource } from './token.ts';

/** Options of {@link staticCredentials}. */
export interface StaticCredentialsOptions {
  readonly auth: ApiDescription['auth'];
  /** Returns the values of credentials and parameters, by the names of their variables. */
  readonly variables: () => Variables;
  /** How long, in ms, previously accepted credentials must be refused without interruption before they count as wrong. Default 600,000. */
  readonly keyPatienceMs?: number;
  /** Provides the clock. Default {@link asyncScheduler}. */
  readonly scheduler?: SchedulerLike;
}

/** Placeholder for the token of requests that carry static credentials instead. It never expires. */
const NO_TOKEN: Token = { text: '', askedAt: 0, lifeMs: Infinity, serverTime: undefined };

/**
 * Creates the source of static credentials (`auth` none, bearer, basic, header, query), which are never renewed. Refused requests are
 * handled as follows:
 *
 * - 401 before any request has succeeded: final (`API_KEY_REJECTED`).
 * - 401 later: retried. If 401s go on for `keyPatienceMs` without interruption, they are final (`API_KEY_REJECTED`).
 * - 403, or 401 for one list while other lists are served: the account probably has no right to read the list. After a few attempts the
 *   requests for the list fail with `API_STATUS`.
 */
export function staticCredentials(options: StaticCredentialsOptions): TokenSource {
  const { auth, variables, scheduler = asyncScheduler, keyPatienceMs = KEY_PATIENCE_MS } = options;
  const { noun, settings } = credentialWords(auth);
  const evidence = new TokenEvidence(NO_TOKEN);
  let refusedSince: number | undefined;

  const refusal = (use: TokenUse, outcome: TokenOutcome): TokenVerdict => {
    const now = scheduler.now();
    const trouble = evidence.recordRefusal(use, now);
    if (outcome === 'forbidden' || trouble.isListsOwn) {
      const isFinal = isTooOld(trouble);
      const pauseMs = Math.max(0, trouble.retryAt - now);
      const forbidden = (who: string, status: number) =>
        new CellarstreamError(
          'API_STATUS',
          `${who} answered ${status}: the ${noun} (${settings}) may have no right to read this list. Grant that right, or leave the list out of RESOURCES`,
          { context: { status } },
        );
      const refused = (who: string, status: number) =>
        new CellarstreamError(
          'TOKEN_REJECTED',
          `${who} refused the ${noun} (${status}) for this list: the request is repeated a few times. If this goes on, the ${noun} (${settings}) may have no right to read this list`,
          {
            context: { status, canPass: true, [RETRY_AFTER]: pauseMs },
          },
        );
      return { isFinal, pauseMs, logsIn: false, errorOf: isFinal ? forbidden : refused };
    }
    refusedSince ??= now;
    const canPass = evidence.state === 'proven' && now - refusedSince < keyPatienceMs;
    const errorOf = (who: string, status: number) =>
      rejection(who, auth, {
        answered: String(status),
        context: { status, ...(canPass && { canPass }) },
      });
    return { ...FINAL, isFinal: !canPass, errorOf };
  };

  return {
    token$: concat(of(NO_TOKEN), NEVER),
    current: () => NO_TOKEN,
    authorize: authorization(auth, variables),
    report: (use, outcome) => {
      if (outcome === 'refused' || outcome === 'forbidden') return refusal(use, outcome);
      refusedSince = undefined; // also after a failure with a status other than 401 and 403
      if (outcome === 'worked') evidence.recordSuccess(use, scheduler.now());
      return outcome === 'failed-for-good' ? FINAL : GO_ON;
    },
  };
}

import type { AccountConfig } from '../config/accounts.ts';
import { describeError } from '../core/errors.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import { shortened } from '../ops/status/shortened.ts';
import type { AccountReport } from './report.ts';

export interface AccountReportInput {
  readonly weight: number;
  readonly config: Pick<AccountConfig, 'account' | 'topics'>;
  /** Error because of which the account is not served; undefined if there is none. */
  readonly error: unknown;
  /** Current figures of the account; undefined if it is not running. */
  readonly figures: AccountFigures | undefined;
}

/**
 * Maximum length of an error text, or of a reason why an account is not ready, in characters: reports of a thousand failing accounts then
 * take less than half of the maximum size of a message.
 */
const MAX_TEXT = 200;

/** Builds the compact report of an account for the fleet's topic, with only the first of the reasons why it is not ready. */
export function accountReport({
  weight,
  config,
  error,
  figures,
}: AccountReportInput): AccountReport {
  const { prefix, sharedPrefix } = config.topics;
  return {
    weight,
    ...(prefix !== `${sharedPrefix}.${config.account}` && { prefix }),
    ...(error !== undefined && { failed: shortened(describeError(error), MAX_TEXT) }),
    ...(figures && {
      figures: {
        ...figures,
        reasons: figures.reasons.slice(0, 1).map((reason) => shortened(reason, MAX_TEXT)),
        eventsPerSecond: Math.round(figures.eventsPerSecond * 100) / 100,
      },
    }),
  };
}

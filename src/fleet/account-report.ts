import type { AccountConfig } from '../config/accounts.ts';
import { describeError } from '../core/errors.ts';
import type { AccountFigures } from '../observe/fleet-view.ts';
import { shortened } from '../ops/status/shortened.ts';
import type { AccountReport } from './report.ts';

export interface Reported {
  readonly weight: number;
  readonly config: Pick<AccountConfig, 'account' | 'topics'>;
  /** Why it can't go on; undefined where it can. */
  readonly error: unknown;
  /** Undefined where it does not run. */
  readonly figures: AccountFigures | undefined;
}

/** Of a text, at most: a thousand accounts that fail are less than half of what one message takes. */
const MAX_TEXT = 200;

/** An account in the few words that go to the fleet's topic: of what is wrong the first line alone. */
export function accountReport({ weight, config, error, figures }: Reported): AccountReport {
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

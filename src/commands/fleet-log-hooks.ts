import type { FleetHooks } from '../fleet/fleet-hooks.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { ListDescription } from '../description/description.ts';
import type { LineLogger } from '../observe/log.ts';
import { logHooks } from './log-hooks.ts';

const STEPS = {
  claim: 'claiming the account',
  warm: "restoring the account's images while another instance serves it",
  ask: 'asked the owner to release the account',
  release: 'releasing the account to another instance',
  drop: 'the account is no longer assigned to this instance: stopped restoring its images',
  stop: "the account's file has changed: stopping the account",
} as const;

export function fleetLogHooks(logger: LineLogger): FleetHooks {
  return {
    onGeneration: ({ number, instances, accounts }) =>
      logger.info(
        { event: 'generation', generation: number, instances, accounts },
        'the group has assigned the accounts',
      ),
    onAccount: ({ account, step }) => logger.info({ event: 'account', account, step }, STEPS[step]),
    onAccountFailed: ({ account, error, delayMs }) =>
      logger.error(
        { event: 'account-failed', account, delayMs, err: error },
        'the account failed and is retried; other accounts are not affected',
      ),
    onQuarantined: ({ account }) =>
      logger.error(
        { event: 'quarantined', account },
        'three instances crashed right after claiming this account: it is quarantined for an hour, or until its file changes',
      ),
    onWrongFile: ({ account, error }) =>
      logger.error(
        { event: 'wrong-file', account, err: error },
        "the account's file is invalid: this instance does not serve the account",
      ),
    onRetry: ({ error, count, delayMs }) =>
      logger.warn({ event: 'retry', what: 'fleet', count, delayMs, err: error }, 'retrying Kafka'),
  };
}

/**
 * Returns hooks that log the events of a fleet's account like {@link logHooks}, except that claiming a list that another instance has not
 * released is logged at level info, with a text for fleets.
 */
export function fleetAccountLogHooks(logger: LineLogger, lists: readonly ListDescription[]): Hooks {
  return {
    ...logHooks(logger, lists),
    onTakenOver: ({ resource }) =>
      logger.info(
        { event: 'taken-over', resource },
        'claimed the list from an instance that had not released it: that instance has crashed, or stops once it is fenced',
      ),
  };
}

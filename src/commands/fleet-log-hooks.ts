import type { FleetHooks } from '../fleet/fleet-hooks.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { ListDescription } from '../description/description.ts';
import type { LineLogger } from '../observe/log.ts';
import { logHooks } from './log-hooks.ts';

const STEPS = {
  claim: 'claiming the account',
  warm: "restoring the account's published records from Kafka while another instance serves the account",
  ask: 'asked the owner to release the account',
  release: 'releasing the account to another instance',
  drop: 'this instance stops what it was doing for the account: serving the account, claiming it, or restoring its published records',
  stop: "the account's file has changed: stopping the account",
} as const;

export function fleetLogHooks(logger: LineLogger): FleetHooks {
  return {
    onGeneration: ({ number, instances, accounts }) =>
      logger.info(
        { event: 'generation', generation: number, instances, accounts },
        'the fleet has assigned its accounts to the instances that are running (accounts: number assigned to this instance)',
      ),
    onAccount: ({ account, step }) => logger.info({ event: 'account', account, step }, STEPS[step]),
    onAccountFailed: ({ account, error, delayMs }) =>
      logger.error(
        { event: 'account-failed', account, delayMs, err: error },
        'this account stopped with an error and is started again after delayMs; other accounts are not affected',
      ),
    onQuarantined: ({ account }) =>
      logger.error(
        { event: 'quarantined', account },
        'three instances crashed right after they began to serve this account: no instance serves the account for an hour (quarantine), or until its file in ACCOUNTS_DIR changes. Look for the cause in the logs of those instances',
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
        'this instance publishes the list from now on. The instance that published it before did not release it, probably because it crashed; if it still runs, Kafka refuses its next write, and it then stops serving the account. Nothing is to be done',
      ),
  };
}

import type { FleetHooks } from '../fleet/fleet-hooks.ts';
import type { Hooks } from '../observe/hooks.ts';
import type { LineLogger } from '../observe/log.ts';
import { logHooks } from './log-hooks.ts';

const STEPS = {
  claim: 'the account is taken',
  warm: 'the images of the account are read, while another instance runs it',
  ask: 'the instance that runs the account is asked for it',
  release: 'the account is stopped, for another instance',
  drop: 'the account is not to be run here any more: nothing more is read for it',
  stop: 'the file of the account has changed: it is stopped',
} as const;

/** What an instance tells of its fleet, as log lines. */
export function fleetLogHooks(logger: LineLogger): FleetHooks {
  return {
    onGeneration: ({ number, instances, accounts }) =>
      logger.info(
        { event: 'generation', generation: number, instances, accounts },
        'the accounts are shared out',
      ),
    onAccount: ({ account, step }) => logger.info({ event: 'account', account, step }, STEPS[step]),
    onAccountFailed: ({ account, error, delayMs }) =>
      logger.error(
        { event: 'account-failed', account, delayMs, err: error },
        'the account has stopped; it is tried again, and the others go on',
      ),
    onQuarantined: ({ account }) =>
      logger.error(
        { event: 'quarantined', account },
        'the account has taken three instances down: nobody runs it for an hour, or until its file changes',
      ),
    onWrongFile: ({ account, error }) =>
      logger.error(
        { event: 'wrong-file', account, err: error },
        'the file of the account is wrong: the account is not served here',
      ),
    onRetry: ({ error, count, delayMs }) =>
      logger.warn({ event: 'retry', what: 'fleet', count, delayMs, err: error }, 'trying again'),
  };
}

/** What an account of a fleet tells, as log lines: as a service of its own, but that a takeover is nothing odd. */
export function fleetAccountLogHooks(logger: LineLogger): Hooks {
  return {
    ...logHooks(logger),
    onTakenOver: ({ resource }) =>
      logger.info(
        { event: 'taken-over', resource },
        'the list is taken over from an instance that has not released it: it is lost, or stops when it finds out',
      ),
  };
}

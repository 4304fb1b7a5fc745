import type { Kafka } from 'kafkajs';
import { CellarstreamError, isRetryable } from '../core/errors.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { existing } from '../kafka/client/topic-facts.ts';
import { readFleetGroupState } from './fleet-group.ts';
import { readFleetTopic } from './fleet-log.ts';

/** Topic prefix of a fleet and name of an account. Together, separated by a dot, they are the prefix of the account's topics. */
export interface FleetAccountName {
  readonly fleet: string;
  readonly account: string;
}

/**
 * Returns each way to split a topic prefix at a dot into a fleet's prefix and an account's name. For `a.b.c`, these are `a` and `b.c`, and
 * `a.b` and `c`.
 */
export function fleetAccountsUnder(prefix: string): readonly FleetAccountName[] {
  const parts = prefix.split('.');
  return parts.slice(1).map((_, index) => ({
    fleet: parts.slice(0, index + 1).join('.'),
    account: parts.slice(index + 1).join('.'),
  }));
}

/**
 * Throws if an account of a running fleet publishes to topics with this prefix, because each change would then be published twice. Does
 * nothing if the check is impossible, for example without the right to read the fleet's Kafka group.
 *
 * @throws CellarstreamError `SETTINGS` if there is such an account; `KAFKA_UNREACHABLE` if the check can be retried.
 */
export async function refuseFleetConflict(prefix: string, kafka: Kafka): Promise<void> {
  const accounts = fleetAccountsUnder(prefix);
  if (accounts.length === 0) return;
  try {
    const topicOf = ({ fleet }: FleetAccountName) => topicNames(fleet).fleet;
    const there = await existing({ kafka }, accounts.map(topicOf));
    for (const each of accounts) {
      // The instances would not fence each other, because their accounts have different transactional ids.
      if (there.has(topicOf(each))) await refuseIfServed(each, prefix, kafka);
    }
  } catch (error) {
    // Other final errors must not prevent a start.
    const isRefusal = error instanceof CellarstreamError && error.code === 'SETTINGS';
    if (isRefusal || isRetryable(error)) throw error;
  }
}

async function refuseIfServed(
  { fleet, account }: FleetAccountName,
  prefix: string,
  kafka: Kafka,
): Promise<void> {
  const { assignment } = await readFleetGroupState(kafka, fleet);
  const instance = assignment?.accounts.get(account);
  if (instance === undefined) return;
  const { reports } = await readFleetTopic(kafka, topicNames(fleet).fleet);
  const { prefix: own = prefix } = reports.get(instance)?.accounts[account] ?? {};
  if (own !== prefix) return;
  const { name } = assignment!.members.find((member) => member.instance === instance)!;
  throw new CellarstreamError(
    'SETTINGS',
    `TOPIC_PREFIX ${prefix} is in use: instance ${name} publishes the account ${account} of the fleet ${fleet} under it. Take the file of this account out of ACCOUNTS_DIR of the fleet, or set another TOPIC_PREFIX`,
  );
}

import type { Kafka } from 'kafkajs';
import { CellarstreamError, isRetryable } from '../core/errors.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { existing } from '../sinks/client/topic-facts.ts';
import { readFleetGroup } from './fleet-group.ts';
import { readFleetLog } from './read-fleet-log.ts';

/** An account of a fleet whose topics would be under a prefix. */
export interface AccountOfFleet {
  /** The fleet's prefix. */
  readonly fleet: string;
  readonly account: string;
}

/** Dots may stand in both, so there may be several. */
export function accountsUnder(prefix: string): readonly AccountOfFleet[] {
  const parts = prefix.split('.');
  return parts.slice(1).map((_, place) => ({
    fleet: parts.slice(0, place + 1).join('.'),
    account: parts.slice(place + 1).join('.'),
  }));
}

/**
 * Refuses to serve an account by itself while a fleet has one that writes the same topics. Their transactional ids
 * differ, so neither would fence the other, and each change would be there twice. Where the group may not be read, nothing is known.
 *
 * @throws CellarstreamError `SETTINGS`, or `KAFKA_UNREACHABLE`, which can pass.
 */
export async function refuseFleetBeside(prefix: string, kafka: Kafka): Promise<void> {
  const accounts = accountsUnder(prefix);
  if (accounts.length === 0) return;
  try {
    const topicOf = ({ fleet }: AccountOfFleet) => topicNames(fleet).fleet;
    const there = await existing({ kafka }, accounts.map(topicOf));
    for (const each of accounts) {
      if (there.has(topicOf(each))) await refuse(each, prefix, kafka);
    }
  } catch (error) {
    const isRefusal = error instanceof CellarstreamError && error.code === 'SETTINGS';
    if (isRefusal || isRetryable(error)) throw error;
  }
}

async function refuse(
  { fleet, account }: AccountOfFleet,
  prefix: string,
  kafka: Kafka,
): Promise<void> {
  const { given } = await readFleetGroup(kafka, fleet);
  const instance = given?.accounts.get(account);
  if (instance === undefined) return;
  const { reports } = await readFleetLog(kafka, topicNames(fleet).fleet);
  const { prefix: own = prefix } = reports.get(instance)?.accounts[account] ?? {};
  if (own !== prefix) return;
  const { name } = given!.members.find((member) => member.instance === instance)!;
  throw new CellarstreamError(
    'SETTINGS',
    `TOPIC_PREFIX ${prefix} is that of the account ${account} of the fleet ${fleet}, which ${name} runs: take its file out of ACCOUNTS_DIR there, or set another TOPIC_PREFIX`,
  );
}

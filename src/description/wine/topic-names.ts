import { topicNames as namesUnder } from '../../schemas/events/topics.ts';
import type { TopicNames } from '../../schemas/events/topics.ts';

/**
 * Returns the names of all topics that the service writes. `prefix` is used for the topics of one account, `sharedPrefix` for the topics
 * that several accounts share.
 */
export function topicNames(
  prefix: string,
  sharedPrefix = prefix,
): TopicNames & { readonly orderStatusChanges: string } {
  const names = namesUnder(prefix, sharedPrefix);
  return { ...names, orderStatusChanges: names.statusChanges({ topic: 'order-status-changes' }) };
}

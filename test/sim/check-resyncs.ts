import { parseSignal } from '../../src/sinks/signals/signals.ts';
import type { ResyncRequest } from '../../src/sinks/signals/signals.ts';
import type { Chains, PublishedEvent } from './published.ts';
import type { SimApi } from './sim-api.ts';
import type { SimMessage } from './sim-broker.ts';

/**
 * Each request is acknowledged, once, as done; and what it asked for has been published since it was
 * made: again, or as a change that came in between. What was hidden meanwhile could not be found, and what was
 * no JSON could not be read: asked for by its number that fails the request. A replica that lags, or a cache, may not show yet where
 * what has changed of late is; pages of a cache are of several times, and a record that moved between them is in none. While the API does not show the list's end, what stands there can't be published, and the request may fail.
 */
export function checkResyncs(
  chains: Chains,
  signals: readonly SimMessage[],
  { list, wasOdd }: Pick<SimApi, 'list' | 'wasOdd'>,
  until: { readonly behindMs: number; readonly cutUntil: number; readonly cachedUntil: number },
): string[] {
  const { behindMs, cutUntil, cachedUntil } = until;
  const violations: string[] = [];
  const { requests, acks } = sorted(signals);
  const truth = list.truth();
  for (const { request, at } of requests) {
    const { id, order_number } = request;
    const { statuses, at: doneAt } = acks.get(id) ?? { statuses: [], at: Infinity };
    const isOdd = (key: string) => wasOdd(Number(key), at, doneAt);
    const isCut = at < cutUntil && order_number === null;
    const mayFail = isCut || (order_number !== null && isOdd(String(order_number)));
    if (statuses.join() !== 'done' && !(mayFail && statuses.join() === 'failed'))
      violations.push(`request ${id}: ${statuses.join() || 'no acknowledgement'}`);
    const isCached = at < cachedUntil && order_number === null;
    if (isCut || isCached) continue;
    const asked = order_number === null ? [...truth.keys()] : [String(order_number)];
    for (const key of asked) {
      const { from, to } = list.hidden(key);
      const movedLately = list.history
        .get(key)!
        .some((sight) => sight.at > at - behindMs && sight.at <= doneAt);
      if (behindMs > 0 && movedLately) continue;
      if (!truth.has(key) || (at < to && doneAt > from) || isOdd(key)) continue;
      const since = (chains.get(key) ?? []).filter(isEvent).some((event) => event.at >= at);
      if (!since) violations.push(`request ${id}: nothing of ${key} was published since`);
    }
  }
  return violations;
}

/** Whether each request has an acknowledgement: where the quota is scarce that takes a window or two. */
export function areAnswered(signals: readonly SimMessage[]): boolean {
  const { requests, acks, certify } = sorted(signals);
  const isCertified = certify.requests.every((id) => certify.acks.some((ack) => ack.id === id));
  return requests.every(({ request }) => acks.has(request.id)) && isCertified;
}

/** Each request for a certificate is done, with a certificate that came in the same transaction. */
export function checkCertifyRequests(
  signals: readonly SimMessage[],
  certificates: readonly { readonly number: number; readonly transaction: number }[],
): string[] {
  const { requests, acks } = sorted(signals).certify;
  return requests.flatMap((id) => {
    const [ack, ...more] = acks.filter((each) => each.id === id);
    if (!ack || more.length > 0) return [`${id} has ${ack ? 'several' : 'no'} acknowledgements`];
    const isWith = certificates.some(
      ({ number, transaction }) => number === ack.number && transaction === ack.transaction,
    );
    return isWith ? [] : [`${id} is acknowledged without its certificate`];
  });
}

function sorted(signals: readonly SimMessage[]) {
  const acks = new Map<string, { readonly statuses: readonly string[]; readonly at: number }>();
  const requests: { readonly request: ResyncRequest; readonly at: number }[] = [];
  const certify = {
    requests: [] as string[],
    acks: [] as { readonly id: string; readonly number: number | null; transaction: number }[],
  };
  for (const { key, value, at, transaction } of signals) {
    const signal = parseSignal({ key: Buffer.from(key!), value });
    if (signal.type === 'resync') requests.push({ request: signal, at });
    else if (signal.type === 'certify') certify.requests.push(signal.id);
    else if (signal.type === 'certify-ack') certify.acks.push({ ...signal, transaction });
    else if (signal.type === 'resync-ack')
      acks.set(signal.id, {
        statuses: [...(acks.get(signal.id)?.statuses ?? []), signal.status],
        at,
      });
  }
  return { requests, acks, certify };
}

function isEvent(event: PublishedEvent | 'tombstone'): event is PublishedEvent {
  return event !== 'tombstone';
}

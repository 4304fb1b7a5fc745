// The topic of ledgers for a guest: a process that uses an account's quota beside whoever runs the account.

import type { Kafka } from 'kafkajs';
import { lastValueFrom, Subject, timeout } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import { CellarstreamError } from '../../core/errors.ts';
import type { TakenOver } from './kafka-ledger.ts';
import { entryOf, guestKey, guestsAt, isOfAccount, isOwn } from './ledger-entries.ts';
import { plainProducer } from '../producer/plain-producer.ts';
import { readBatches } from '../fetch/read-batches.ts';
import type { LogMessage } from '../fetch/record-batches.ts';
import { topicBounds } from '../client/topic-facts.ts';

/** An account's entries of the topic of ledgers, for somebody who asks beside whoever runs the account. */
export interface GuestLog {
  /**
   * Appends an entry, and gives those of the account that stand before it: committed or not.
   *
   * @param text No other entry of this process is the same: it is found by it.
   * @throws CellarstreamError `POSITION` when there is no such topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, ...
   */
  readonly declare: (text: string) => Promise<TakenOver>;
  readonly close: () => void;
}

interface GuestLogOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly account: string;
  /** Names this process. */
  readonly instance: string;
  readonly scheduler: SchedulerLike;
}

/** What was acknowledged can be read: at once. */
const READ_WITHIN_MS = 10_000;
const NO_SERVICE = '`cellarstream run` makes it when it starts';

/**
 * Entries of a guest have a key of their own, so that compaction leaves the account's, and are in no transaction: a guest fences
 * nobody.
 */
export function guestLog(options: GuestLogOptions): GuestLog {
  const { kafka, topic, account, instance, scheduler } = options;
  const producer = plainProducer(kafka);
  const key = guestKey(account, instance);
  /** By offset: an entry was there by then. Brokers' clocks don't say how old it is where another one leads since. */
  const seen = new Map<string, number>();

  /** All of the account up to one's own newest entry: where the log ends otherwise an open transaction would say. */
  const entriesTo = async (low: bigint, text: string): Promise<LogMessage[]> => {
    const from = new Map([[0, low]]);
    const found: LogMessage[] = [];
    const isThere$ = new Subject<void>();
    const batches$ = readBatches(
      {
        ...{ kafka, topic, range: { from, ends: from }, follow: true },
        isolation: 'uncommitted',
        isPatient: false,
        stop$: isThere$,
      },
      ({ messages }) => {
        found.push(...messages.filter((one) => isOfAccount(one, account)));
        if (found.some((one) => isEntry(one, text))) isThere$.next();
        return [];
      },
    );
    const late = timeout<never, never>({
      each: READ_WITHIN_MS,
      scheduler,
      with: () => {
        throw unread(topic);
      },
    });
    await lastValueFrom(batches$.pipe(late), { defaultValue: undefined });
    return found;
  };
  const isEntry = (one: LogMessage, text: string) =>
    one.key?.toString() === key && String(one.value) === text;

  return {
    declare: async (text) => {
      const low = (await topicBounds({ kafka }, topic, NO_SERVICE)).get(0)?.low ?? 0n;
      const sentAt = scheduler.now();
      await producer.send(topic, { key, value: Buffer.from(text) });
      const at = scheduler.now();
      const all = await entriesTo(low, text);
      const own = all.findLast((one) => isEntry(one, text));
      if (!own) throw unread(topic);
      const before = all.slice(0, all.indexOf(own));
      const { guests } = guestsAt(
        before.filter((one) => one.key?.toString() !== key),
        account,
        own,
      );
      const entries = before
        .filter((one) => isOwn(one, account))
        .map((one) => {
          const seenAt = seen.get(one.offset) ?? at;
          seen.set(one.offset, seenAt);
          const { text: entry, ageMs } = entryOf(one, own);
          return { text: entry, ageMs: Math.max(ageMs, sentAt - seenAt) };
        });
      return { entries, claimedAt: at, guests, at };
    },
    close: () => producer.close(),
  };
}

/** As when the topic is deleted meanwhile. */
function unread(topic: string): CellarstreamError {
  return new CellarstreamError(
    'KAFKA_UNREACHABLE',
    `${topic} lacks the entry that was just written to it: it is tried again`,
    { context: { topic } },
  );
}

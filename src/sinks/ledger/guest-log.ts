// The ledger topic for a guest: a process that uses an account's quota alongside the account's owner.

import type { Kafka } from 'kafkajs';
import { lastValueFrom, Subject, throwError, timeout } from 'rxjs';
import type { SchedulerLike } from 'rxjs';
import type { PriorEntries } from './kafka-ledger.ts';
import {
  entryOf,
  guestKey,
  guestEntriesAt,
  isOfAccount,
  isOwn,
  unreadError,
} from './ledger-entries.ts';
import { PlainProducer } from '../producer/plain-producer.ts';
import { readBatches } from '../../kafka/fetch/read-batches.ts';
import type { LogMessage } from '../../kafka/fetch/record-batches.ts';
import { topicBounds } from '../../kafka/client/topic-facts.ts';

export interface GuestLog {
  /**
   * Appends an entry of this guest (a process that uses the API key beside the service) to the ledger topic. Returns the account's earlier
   * entries, committed or not.
   *
   * @param text Must differ from all other entries of this process, because the appended entry is recognized by its text.
   * @throws CellarstreamError `POSITION` if the topic does not exist; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`, ...
   */
  readonly declare: (text: string) => Promise<PriorEntries>;
  readonly close: () => void;
}

interface GuestLogOptions {
  readonly kafka: Kafka;
  readonly topic: string;
  readonly account: string;
  /** Name of this guest process. It is part of the message key of the entries that the guest writes to the ledger. */
  readonly instance: string;
  readonly scheduler: SchedulerLike;
}

/** Longest wait until an entry that a broker has acknowledged can be read from the ledger topic, in ms. Normally it can be read at once. */
const READ_TIMEOUT_MS = 10_000;
const MISSING_TOPIC_ADVICE = '`cellarstream run` creates it when it starts';

/** Opens the ledger topic for a guest: a process that uses the API key beside the account's owner. */
export function guestLog(options: GuestLogOptions): GuestLog {
  const { kafka, topic, account, instance, scheduler } = options;
  // Without transactions, so that a guest fences no other process.
  const producer = new PlainProducer(kafka);
  const key = guestKey(account, instance);
  /**
   * Maps the offset of an owner's entry to a time in ms (`scheduler.now()`) at which the entry certainly existed. The time since then is a
   * lower bound of the entry's age.
   */
  const seen = new Map<string, number>();

  /**
   * Reads the account's entries in the ledger topic from the offset `low` on, committed or not, until this guest's entry with the text
   * `text` is among them. Returns all entries read.
   */
  const entriesTo = async (low: bigint, text: string): Promise<LogMessage[]> => {
    const from = new Map([[0, low]]);
    const found: LogMessage[] = [];
    const isThere$ = new Subject<void>();
    const batches$ = readBatches(
      {
        ...{ kafka, topic, range: { from, ends: from }, follow: true, stop$: isThere$ },
        isolation: 'uncommitted',
        retriesOutages: false,
      },
      ({ messages }) => {
        found.push(...messages.filter((one) => isOfAccount(one, account)));
        if (found.some((one) => isEntry(one, text))) isThere$.next();
        return [];
      },
    );
    const failed$ = throwError(() => unreadError(topic));
    const read$ = batches$.pipe(timeout({ each: READ_TIMEOUT_MS, scheduler, with: () => failed$ }));
    await lastValueFrom(read$, { defaultValue: undefined });
    return found;
  };
  const isEntry = (one: LogMessage, text: string) =>
    one.key?.toString() === key && String(one.value) === text;

  return {
    declare: async (text) => {
      const low = (await topicBounds({ kafka }, topic, MISSING_TOPIC_ADVICE)).get(0)?.low ?? 0n;
      const sentAt = scheduler.now();
      await producer.send(topic, { key, value: Buffer.from(text) });
      const at = scheduler.now();
      const all = await entriesTo(low, text);
      const own = all.findLast((one) => isEntry(one, text));
      if (!own) throw unreadError(topic);
      const before = all.slice(0, all.indexOf(own));
      const others = before.filter((one) => one.key?.toString() !== key);
      const { guests } = guestEntriesAt(others, account, own);
      const entries = before
        .filter((one) => isOwn(one, account))
        .map((one) => {
          const seenAt = seen.get(one.offset) ?? at;
          seen.set(one.offset, seenAt);
          const { text: entry, ageMs } = entryOf(one, own);
          // After a change of the partition leader, the brokers' timestamps can't be compared.
          return { text: entry, ageMs: Math.max(ageMs, sentAt - seenAt) };
        });
      return { entries, claimedAt: at, guestEntries: guests, at };
    },
    close: () => producer.close(),
  };
}

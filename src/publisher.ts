import type { Destination } from './destination.ts';
import { changeMessages, deadLetter, statusMessage } from './sinks/messages.ts';
import type { Origin } from './sinks/messages.ts';
import type { Message } from './sinks/sink.ts';
import type { ImageUpdate } from './state/store.ts';
import type { Change } from './streams/diff.ts';
import { statusChanges } from './streams/order-status.ts';
import type { StatusChange } from './streams/order-status.ts';
import type { RejectedRecord } from './streams/records.ts';

/** What the changes of a page come to. */
export interface Publication {
  readonly messages: readonly Message[];
  readonly images: readonly ImageUpdate[];
  readonly statusChanges: readonly { readonly key: string; readonly change: StatusChange }[];
  /** The sequence of its last event. */
  readonly sequence: number;
}

export interface PublicationOptions {
  readonly destination: Destination;
  readonly origin: Origin;
  /** The sequence of the event before the first. */
  readonly sequence: number;
  /** Published at: ms since the epoch. */
  readonly now: number;
}

/** Changes of orders, and records that can't be published, as messages; each event with the next sequence. */
export function publicationOf(
  changes: readonly Change[],
  rejected: readonly { readonly record: RejectedRecord; readonly offset: number }[],
  options: PublicationOptions,
): Publication {
  const { destination, origin, now } = options;
  const { codec, orders, statusChanges: statuses, deadLetters } = destination;
  const messages: Message[] = [];
  const images: ImageUpdate[] = [];
  const found: { key: string; change: StatusChange }[] = [];
  let { sequence } = options;

  for (const change of changes) {
    sequence += 1;
    const { key } = change;
    messages.push(...changeMessages(change, sequence, { to: orders, codec, origin, now }));
    for (const status of statusChanges(change)) {
      messages.push(statusMessage(status, { key, sequence }, { to: statuses, origin, now }));
      found.push({ key, change: status });
    }
    const { after } = change.images;
    const image = after && { schemaId: orders.schemaId, bytes: after };
    images.push({ key, sequence, image });
  }
  for (const { record, offset } of rejected) {
    messages.push(deadLetter(record, offset, { to: deadLetters, resource: origin.resource, now }));
  }
  return { messages, images, statusChanges: found, sequence };
}

import { randomUUID } from 'node:crypto';
import {
  filter,
  lastValueFrom,
  merge,
  mergeMap,
  NEVER,
  takeUntil,
  takeWhile,
  tap,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import { FIRST_RETRIES, openKafka } from '../sinks/client/open-kafka.ts';
import { CellarstreamError } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { topicNames } from '../schemas/events/topics.ts';
import type { Offsets } from '../sinks/sink.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import { parseSignal, SIGNAL_DAYS, signalMessage } from '../sinks/signals/signals.ts';
import type { ResyncAck, ResyncRequest } from '../sinks/signals/signals.ts';
import { backoff } from '../streams/flow/backoff.ts';
import { instantOf } from '../schemas/avro/instant.ts';
import { logHooks } from './log-hooks.ts';
import { oneAccount } from './one-account.ts';
import { stopSignals } from './stop.ts';

export interface ResyncFlags {
  /** Of a fleet. */
  readonly account?: string;
  /** An order number. */
  readonly order?: string;
  readonly resource?: Resource;
  /** ISO 8601; without a zone it is UTC. */
  readonly since?: string;
  readonly wait: boolean;
  /** Seconds; 0: as long as it takes. */
  readonly timeout: number;
}

/** A service that runs has acknowledged a single order long before. */
const SILENCE_MS = 10_000;
const STAYS = `the request stays in the topic for ${SIGNAL_DAYS} days, and the service carries it out when it reads it`;

/**
 * `cellarstream resync`: leaves a request in the topic of signals, and waits until the service has
 * acknowledged it for each resource. An acknowledgement is a JSON object on a line of stdout.
 * Resolves to whether all is done; without waiting, to true.
 */
export async function resyncCommand(flags: ResyncFlags): Promise<boolean> {
  const source = { env: process.env, cwd: process.cwd() };
  const config = oneAccount(source, flags.account, ['kafka']);
  const request = requestOf(flags, config);
  const logger = await createLogger({ level: config.logLevel });
  const kafka = openKafka(config, { log: kafkaLogCreator(logger), kafkaRetries: FIRST_RETRIES });
  const topic = kafkaSignals({ kafka }, topicNames(config.topics.sharedPrefix).signals);
  const stop$ = stopSignals();

  const ends = await topic.ends();
  await topic.send(signalMessage(topic.name, request));
  say(`${request.resources.join(', ')}: asked for, request ${request.id}`);
  if (!flags.wait) return true;

  const left = new Set(request.resources);
  let isFine = true;
  const { onSignalsFailed } = logHooks(logger);
  const acknowledged$ = acknowledgements(topic, ends, request).pipe(
    backoff({ onRetry: onSignalsFailed }),
    filter(({ resource }) => left.delete(resource)), // after a fault they come again
    tap((ack) => {
      isFine &&= ack.status === 'done';
      process.stdout.write(`${JSON.stringify(ack)}\n`);
      say(lineOf(ack));
    }),
    takeWhile(() => left.size > 0),
  );
  const silence = timer(SILENCE_MS).subscribe(() => {
    if (left.size === request.resources.length) say(`no service has acknowledged it yet: ${STAYS}`);
    else say(`waiting for ${[...left].join(', ')} (an empty list answers when it has a record)`);
  });
  const late$ = flags.timeout === 0 ? NEVER : timer(flags.timeout * 1_000);
  const enough$ = merge(stop$, late$);
  await lastValueFrom(acknowledged$.pipe(takeUntil(enough$)), { defaultValue: undefined });
  silence.unsubscribe();
  await topic.close();
  if (left.size > 0) say(`${[...left].join(', ')}: not acknowledged so far; ${STAYS}`);
  return isFine && left.size === 0;
}

/** @throws CellarstreamError `SETTINGS` when the flags do not go together. */
export function requestOf(
  { order, resource, since }: Pick<ResyncFlags, 'order' | 'resource' | 'since'>,
  { account, resources }: Pick<Config, 'account' | 'resources'>,
): ResyncRequest {
  if (order !== undefined && !(/^\d{1,19}$/.test(order) && BigInt(order) < 2n ** 63n))
    throw wrong('--order must be an order number: digits, of 64 bits at most');
  if (order !== undefined && (resource ?? 'orders') !== 'orders') {
    throw wrong(`--order concerns orders alone: leave out --resource ${resource}`);
  }
  if (order !== undefined && since !== undefined)
    throw wrong('--order and --since exclude each other: give one of them');
  const from = since === undefined ? null : instantOf({ since }, 'since');
  if (since !== undefined && from === null) {
    throw wrong('--since must be an ISO 8601 time, such as 2026-01-31T12:00:00Z');
  }
  const of = order === undefined ? resource : 'orders';
  return {
    type: 'resync',
    id: randomUUID(),
    account,
    resources: of === undefined ? [...resources] : [of],
    order_number: order === undefined ? null : numberOf(order),
    since: from === null ? null : new Date(from).toISOString(),
    requested_at: new Date().toISOString(),
  };
}

function acknowledgements(
  topic: SignalTopic,
  from: Offsets,
  { id, account }: ResyncRequest,
): Observable<ResyncAck> {
  return topic.read({ from, follow: true }).pipe(
    mergeMap(({ messages }) => messages.filter(({ key }) => key?.toString() === id)),
    mergeMap((message) => {
      const signal = parseSignal(message);
      return signal.type === 'resync-ack' && signal.account === account ? [signal] : [];
    }),
  );
}

/** As JSON's number where that holds it. */
function numberOf(order: string): number | string {
  return Number.isSafeInteger(Number(order)) ? Number(order) : order;
}

function lineOf({ resource, status, events, message }: ResyncAck): string {
  const count = `${events} event${events === 1 ? '' : 's'}`;
  return `${resource}: ${status}, ${count} published${message === null ? '' : ` (${message})`}`;
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

function wrong(message: string): CellarstreamError {
  return new CellarstreamError('SETTINGS', message);
}

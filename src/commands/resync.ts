import { randomUUID } from 'node:crypto';
import { merge, NEVER, timer } from 'rxjs';
import type { Config, Resource } from '../config/config.ts';
import { STARTUP_RETRIES, openKafka } from '../sinks/open-kafka.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import { SIGNAL_DAYS } from '../sinks/signals/signals.ts';
import type { ResyncAck, ResyncRequest } from '../sinks/signals/signals.ts';
import { instantIn } from '../schemas/avro/instant.ts';
import { logHooks } from './log-hooks.ts';
import { oneAccount, usageError, processSource } from './one-account.ts';
import { sendRequest } from './signal-acks.ts';
import { stopSignals } from './stop.ts';
import { printLine } from './terminal.ts';

export interface ResyncFlags {
  readonly account?: string;
  /** Key of the single record to publish again: an order number, as decimal digits. Default: all records of the lists. */
  readonly order?: string;
  readonly resource?: Resource;
  /** Publishes only records modified at this time or later (ISO 8601; UTC without a zone). Default: records of any time. */
  readonly since?: string;
  readonly wait: boolean;
  /** Longest time to wait for acknowledgements, in seconds; 0: no limit. */
  readonly timeout: number;
}

/**
 * How long the command waits for acknowledgements before it prints that some are missing, in ms. A running service acknowledges a request
 * for a single order sooner.
 */
const SILENCE_MS = 10_000;
const STAYS = `the request stays in the topic for ${SIGNAL_DAYS} days, and the service carries it out when it reads it`;

/**
 * `cellarstream resync`: writes a request to the signals topic, and prints each acknowledgement of the service to stdout as a JSON line.
 * Resolves to whether everything was published. With `--no-wait`, resolves to true once the request is written.
 */
export async function resyncCommand(flags: ResyncFlags): Promise<boolean> {
  const source = processSource();
  const config = oneAccount(source, flags.account, ['kafka']);
  const request = resyncRequestOf(flags, config);
  const logger = await createLogger({ level: config.logLevel });
  const kafka = openKafka(config, { log: kafkaLogCreator(logger), kafkaRetries: STARTUP_RETRIES });
  const topic = kafkaSignals({ kafka }, topicNames(config.topics.sharedPrefix).signals);
  const stop$ = stopSignals();

  const acknowledgements = await sendRequest(topic, request);
  printLine(`${request.resources.join(', ')}: requested, request ${request.id}`);
  if (!flags.wait) return true;

  const left = new Set(request.resources);
  const silence = timer(SILENCE_MS).subscribe(() => {
    if (left.size === request.resources.length)
      printLine(`no service has acknowledged it yet: ${STAYS}`);
    else
      printLine(
        `waiting for ${[...left].join(', ')} (an empty list is acknowledged once it has a record)`,
      );
  });
  const late$ = flags.timeout === 0 ? NEVER : timer(flags.timeout * 1_000);
  const acks = await acknowledgements({
    over$: merge(stop$, late$),
    onRetry: logHooks(logger).onSignalsFailed,
    onAck: (ack) => {
      left.delete(ack.resource);
      process.stdout.write(`${JSON.stringify(ack)}\n`);
      printLine(lineOf(ack));
    },
  });
  silence.unsubscribe();
  await topic.close();
  if (left.size > 0) printLine(`${[...left].join(', ')}: not acknowledged so far; ${STAYS}`);
  return left.size === 0 && [...acks.values()].every(({ status }) => status === 'done');
}

/**
 * Builds the resync request from the command's flags.
 *
 * @throws CellarstreamError `SETTINGS` if a flag is malformed, flags contradict each other, or the API can't request a single record.
 */
export function resyncRequestOf(
  { order, resource, since }: Pick<ResyncFlags, 'order' | 'resource' | 'since'>,
  { account, description, resources }: Pick<Config, 'account' | 'description' | 'resources'>,
): ResyncRequest {
  const single = description.lists.filter(({ one }) => one).map((list) => list.name);
  if (order !== undefined) {
    if (!(/^\d{1,19}$/.test(order) && BigInt(order) < 2n ** 63n))
      throw usageError('--order must be an order number: digits, less than 2^63');
    if (single.length === 0)
      throw usageError(
        "--order can't be used: the API has no request for a single record of any list",
      );
    if (resource !== undefined && !single.includes(resource))
      throw usageError(
        `--order can't be used with --resource ${resource}: the API has no request for a single record of that list. Leave out --order or --resource`,
      );
    if (resource === undefined && single.length > 1)
      throw usageError(`--order needs --resource: ${single.join(' or ')}`);
    if (since !== undefined)
      throw usageError("--order and --since can't be used together: leave out one of them");
  }
  const from = instantIn(since);
  if (since !== undefined && from === null) {
    throw usageError('--since must be an ISO 8601 time, such as 2026-01-31T12:00:00Z');
  }
  const of = resource ?? (order === undefined ? undefined : single[0]);
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

/** Returns the order number as a number if JavaScript represents it exactly, else as a string. */
function numberOf(order: string): number | string {
  return Number.isSafeInteger(Number(order)) ? Number(order) : order;
}

function lineOf({ resource, status, events, message }: ResyncAck): string {
  const count = `${events} event${events === 1 ? '' : 's'}`;
  return `${resource}: ${status}, ${count} published${message === null ? '' : ` (${message})`}`;
}

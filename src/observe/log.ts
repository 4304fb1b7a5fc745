import { pino, stdTimeFunctions } from 'pino';
import type { DestinationStream, Logger, LoggerOptions } from 'pino';
import type { LogEntry, logCreator } from 'kafkajs';
import type { LogLevel } from '../config/config.ts';
import { CellarstreamError, describeError } from '../core/errors.ts';

export type { Logger } from 'pino';

/** As much of a {@link Logger} as it takes to write lines. */
export interface LineLogger {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** Lines for people rather than JSON. Default: whether stderr is a terminal. */
  readonly pretty?: boolean;
  /** Where the lines go. Default stderr. */
  readonly destination?: DestinationStream;
}

const STDERR = 2;

/**
 * A second net, under {@link Secret}: what is logged by one of these names is not shown, however
 * it got there. The last line is of things that hold a record, and so personal fields.
 */
const HIDDEN = [
  ...['apiKey', 'API_KEY', 'password', 'secret', 'hmacKey', 'sasl'],
  ...['token', 'accessToken', 'authorization', 'Authorization', 'cookie'],
  ...['record', 'before', 'after', 'raw', 'body', 'data'],
];

const OPTIONS: LoggerOptions = {
  base: { pid: process.pid },
  timestamp: stdTimeFunctions.isoTime,
  formatters: { level: (label) => ({ level: label }) },
  // Wildcards stand for one level each: three deep is deeper than anything that is logged.
  redact: {
    paths: HIDDEN.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
    censor: '[redacted]',
  },
  serializers: { err: errorFields },
};

/**
 * A logger that writes to stderr: JSON lines, or readable ones on a terminal. It writes at once, so
 * that the last line before an exit is there too.
 *
 * Errors go under `err`: of ours the code, the text and the context; of others the stack as well,
 * and never their other fields, where libraries keep requests and answers.
 */
export async function createLogger(options: LogOptions): Promise<Logger> {
  const { level, pretty = process.stderr.isTTY, destination } = options;
  const settings = { ...OPTIONS, level };
  if (!pretty) return pino(settings, destination ?? pino.destination({ fd: STDERR, sync: true }));
  const { build } = await import('pino-pretty'); // only for people: it slows the start
  const readable = build({
    destination: destination ?? STDERR,
    sync: true,
    colorize: process.stderr.isTTY && process.stderr.hasColors(),
    ignore: 'pid',
    translateTime: 'SYS:HH:MM:ss.l',
    singleLine: true,
  });
  return pino(settings, readable);
}

function errorFields(error: unknown): object {
  const message = describeError(error);
  if (error instanceof CellarstreamError) {
    return { type: error.name, code: error.code, message, context: error.context };
  }
  return error instanceof Error ? { type: error.name, message, stack: error.stack } : { message };
}

/** kafkajs tells of its inner life at INFO; what is worth an operator's line, we say ourselves. */
const LEVELS: Readonly<Record<string, 'error' | 'warn' | 'debug' | 'trace'>> = {
  ERROR: 'error',
  WARN: 'warn',
  INFO: 'debug',
  DEBUG: 'trace',
};

/** What kafkajs heals by trying again, and reports as errors at each try. */
const EXPECTED = [
  /\b(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)\b/,
  /Connection timeout|Closed connection|Failed to connect to broker, reconnecting/,
  /another concurrent operation on the same transaction/, // CONCURRENT_TRANSACTIONS
  /not the correct coordinator for this group/, // a transaction coordinator that was just made
  // A producer that gives up is thrown away, and what it committed is read back.
  /Limiting retries for the idempotent producer/,
  /group is rebalancing|not aware of this member|coordinator is loading|coordinator is not avail/,
  /Failed to find group coordinator/,
  // A secure connection or a login that fails: we say so ourselves, in one line that says what to do.
  /Connection error: |Failed to connect to seed broker|authentication failed|SASL (mechanism|state)/i,
  /middle of a leadership election|does not host this topic-partition/,
  // Somebody else has just made them, most often; anything else is an error that we throw, with its reason.
  /Topic creation errors/,
];

/** The only fields that are passed on: others hold what brokers sent, or stacks. */
const SHOWN = ['broker', 'groupId', 'topic', 'partition', 'offset', 'retryCount', 'retryTime'];

/**
 * Takes kafkajs' lines over: `new Kafka({ logCreator: kafkaLogCreator(logger), ... })`.
 *
 * Its errors and warnings keep their level, unless they tell of what it heals by trying again, as
 * a broker that is away or a group that rebalances: those are debug. So is a consumer's crash of that
 * cause: we make another one, and say so ourselves.
 */
export function kafkaLogCreator(logger: Logger): logCreator {
  const own = logger.child({ component: 'kafkajs' });
  return () => (entry) => {
    const level = levelOf(entry);
    if (!own.isLevelEnabled(level)) return;
    const { log, namespace } = entry;
    const fields = Object.entries(log).filter(
      ([name, value]) => SHOWN.includes(name) && ['string', 'number'].includes(typeof value),
    );
    own[level]({ namespace, ...Object.fromEntries(fields) }, textOf(log));
  };
}

function levelOf({ label, log }: LogEntry): 'error' | 'warn' | 'debug' | 'trace' {
  const level = LEVELS[label] ?? 'error';
  if (level !== 'error' && level !== 'warn') return level;
  const text = textOf(log);
  const healing = EXPECTED.some((pattern) => pattern.test(text));
  return healing ? 'debug' : level;
}

/** The message, which kafkajs sometimes gives as an Error, and the text of the error behind it. */
function textOf(log: Readonly<Record<string, unknown>>): string {
  const texts = [log.message, log.error].map((part) =>
    part instanceof Error ? part.message : part,
  );
  return texts.filter((text) => typeof text === 'string').join(': ');
}

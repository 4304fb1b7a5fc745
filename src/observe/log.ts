import { pino, stdTimeFunctions } from 'pino';
import type { DestinationStream, Logger, LoggerOptions } from 'pino';
import type { LogEntry, logCreator } from 'kafkajs';
import type { LogLevel } from '../config/config.ts';
import { CellarstreamError, describeError } from '../core/errors.ts';

export type { Logger } from 'pino';

export interface LineLogger {
  debug(fields: object, text: string): void;
  info(fields: object, text: string): void;
  warn(fields: object, text: string): void;
  error(fields: object, text: string): void;
}

export interface LogOptions {
  readonly level: LogLevel;
  /** Whether lines are formatted for people instead of as JSON. Default: true if stderr is a terminal. */
  readonly pretty?: boolean;
  /** Stream to which the log is written. Default: stderr. */
  readonly destination?: DestinationStream;
}

const STDERR = 2;

/**
 * Names of fields whose values are not logged. The names before `record` are of secrets, which {@link Secret} protects as well; the others
 * are of records with personal data.
 */
const REDACTED_PATHS = [
  ...['apiKey', 'API_KEY', 'password', 'secret', 'hmacKey', 'sasl'],
  ...['token', 'accessToken', 'authorization', 'Authorization', 'cookie'],
  ...['record', 'before', 'after', 'raw', 'body', 'data'],
];

const OPTIONS: LoggerOptions = {
  base: { pid: process.pid },
  timestamp: stdTimeFunctions.isoTime,
  formatters: { level: (label) => ({ level: label }) },
  // A wildcard stands for one level; no logged object is more than three levels deep.
  redact: {
    paths: REDACTED_PATHS.flatMap((name) => [name, `*.${name}`, `*.*.${name}`]),
    censor: '[redacted]',
  },
  serializers: { err: errorFields },
};

/**
 * Creates a logger. By default it writes to stderr: JSON lines or, on a terminal, lines for people. It writes synchronously, so that the
 * last line before an exit is complete. Errors have to be passed as the field `err`.
 */
export async function createLogger(options: LogOptions): Promise<Logger> {
  const { level, pretty = process.stderr.isTTY, destination } = options;
  const settings = { ...OPTIONS, level };
  if (!pretty) return pino(settings, destination ?? pino.destination({ fd: STDERR, sync: true }));
  const { build } = await import('pino-pretty'); // loaded only if needed: it slows the start
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
  // Other fields of errors are omitted, because libraries store requests and responses in them.
  if (error instanceof CellarstreamError) {
    return { type: error.name, code: error.code, message, context: error.context };
  }
  return error instanceof Error ? { type: error.name, message, stack: error.stack } : { message };
}

/**
 * Log level at which lines of each kafkajs level are logged. kafkajs's INFO lines describe its internals and are therefore logged at debug.
 */
const LEVELS: Readonly<Record<string, 'error' | 'warn' | 'debug' | 'trace'>> = {
  ERROR: 'error',
  WARN: 'warn',
  INFO: 'debug',
  DEBUG: 'trace',
};

/**
 * Patterns for errors and warnings of kafkajs that are logged only at level debug, because kafkajs retries, or the service handles or
 * reports them itself.
 */
const TRANSIENT_KAFKA_ERRORS = [
  /\b(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)\b/,
  /Connection timeout|Closed connection|Failed to connect to broker, reconnecting/,
  /another concurrent operation on the same transaction/, // CONCURRENT_TRANSACTIONS
  /not the correct coordinator for this group/, // the transaction coordinator was just created or moved
  // A producer that gives up is replaced, and its last commit is read back.
  /Limiting retries for the idempotent producer/,
  /group is rebalancing|not aware of this member|coordinator is loading|coordinator is not avail/,
  /Failed to find group coordinator/,
  // Failed TLS handshakes and logins: the service logs them itself, with advice.
  /Connection error: |Failed to connect to seed broker|authentication failed|SASL (mechanism|state)/i,
  /middle of a leadership election|does not host this topic-partition/,
  // Usually another process has just created the topics; other causes are thrown as errors with their reason.
  /Topic creation errors/,
];

/** Fields of kafkajs's log entries that are logged besides namespace, message and error. Other fields may contain data or stack traces. */
const LOGGED_KAFKA_FIELDS = [
  'broker',
  'groupId',
  'topic',
  'partition',
  'offset',
  'retryCount',
  'retryTime',
];

/**
 * Creates a kafkajs log creator that writes to `logger`: `new Kafka({ logCreator: kafkaLogCreator(logger), ... })`. Errors and warnings
 * that kafkajs resolves by retrying, or that the service handles or reports itself, are logged at level debug.
 */
export function kafkaLogCreator(logger: Logger): logCreator {
  const own = logger.child({ component: 'kafkajs' });
  return () => (entry) => {
    const level = levelOf(entry);
    if (!own.isLevelEnabled(level)) return;
    const { log, namespace } = entry;
    const fields = Object.entries(log).filter(
      ([name, value]) =>
        LOGGED_KAFKA_FIELDS.includes(name) && ['string', 'number'].includes(typeof value),
    );
    own[level]({ namespace, ...Object.fromEntries(fields) }, textOf(log));
  };
}

function levelOf({ label, log }: LogEntry): 'error' | 'warn' | 'debug' | 'trace' {
  const level = LEVELS[label] ?? 'error';
  if (level !== 'error' && level !== 'warn') return level;
  const text = textOf(log);
  const healing = TRANSIENT_KAFKA_ERRORS.some((pattern) => pattern.test(text));
  return healing ? 'debug' : level;
}

/**
 * Joins the fields `message` and `error` of a log entry to one text. The value of each field may be a text or an Error object; other values
 * are omitted.
 */
function textOf(log: Readonly<Record<string, unknown>>): string {
  const texts = [log.message, log.error].map((part) =>
    part instanceof Error ? part.message : part,
  );
  return texts.filter((text) => typeof text === 'string').join(': ');
}

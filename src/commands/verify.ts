import { randomUUID } from 'node:crypto';
import type { Kafka } from 'kafkajs';
import {
  defer,
  lastValueFrom,
  merge,
  NEVER,
  repeat,
  ReplaySubject,
  takeUntil,
  takeWhile,
  timer,
} from 'rxjs';
import type { Observable } from 'rxjs';
import { newestCertificates } from '../consumers/certificates.ts';
import type { PublishedCertificate } from '../consumers/certificates.ts';
import { describeError, isResourceError } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import type { Resource } from '../description/description.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { STARTUP_RETRIES, openKafkaClients } from '../sinks/open-kafka.ts';
import { existing, missingTopicError } from '../kafka/client/topic-facts.ts';
import { kafkaSignals } from '../sinks/signals/kafka-signals.ts';
import type { SignalTopic } from '../sinks/signals/kafka-signals.ts';
import type { CertifyAck } from '../sinks/signals/signals.ts';
import { logHooks } from './log-hooks.ts';
import { replayedPrefix, replaySettings, usageError, processSource } from './one-account.ts';
import { sendRequest } from './signal-acks.ts';
import type { AcksOptions } from './signal-acks.ts';
import { stopSignals } from './stop.ts';
import { printLine } from './terminal.ts';
import { verifyList } from './verified-list.ts';
import { isRight, verifyJson, verifyTable } from './verify-lines.ts';
import type { ListFinding } from './verify-lines.ts';

export interface VerifyFlags {
  readonly account?: string;
  readonly json?: boolean;
  /** Whether to request new certificates from the running service before the topics are checked. */
  readonly fresh?: boolean;
  /** How long to wait for new certificates, in seconds. */
  readonly timeout: number;
  /** Path of a CSV file with a user's own copy of a list, to be checked. Only allowed if the command names exactly one list. */
  readonly file?: string;
}

/** Pause between two attempts to read the acknowledged certificates, in ms. */
const CHECK_EVERY_MS = 200;

/**
 * `cellarstream verify`: compares the topics of lists with the newest certificates of full scans, and a user's own copy of a list with its
 * topic and certificate. The service's cursors and store are not used. Resolves to whether everything is correct.
 */
export async function verifyCommand(
  named: readonly Resource[],
  flags: VerifyFlags,
): Promise<boolean> {
  if (flags.file !== undefined && named.length !== 1) {
    throw usageError(
      'with --file, name exactly one list, as in cellarstream verify LIST --file copy.csv',
    );
  }
  const config = replaySettings(processSource(), flags.account);
  const logger = await createLogger({ level: config.logLevel });
  const log = kafkaLogCreator(logger);
  const { kafka, registry } = openKafkaClients(config, { log, kafkaRetries: STARTUP_RETRIES });
  const resources = named.length > 0 ? [...new Set(named)] : config.resources;
  try {
    const account = flags.account ?? config.account;
    const prefix = await replayedPrefix(config, flags.account, kafka);
    const names = topicNames(prefix, config.topics.sharedPrefix);
    const lists = resources.map((resource) => ({ account, resource }));
    const { file, fresh, timeout } = flags;
    const deadline$ = fresh ? inTime(timeout) : NEVER;
    // Checked first: a certificate for a misspelled name would be waited for in vain.
    if (fresh) await requireSome(kafka, resources.map(names.records));
    const acks = fresh
      ? await freshCertificates(kafkaSignals({ kafka }, names.signals), account, resources, {
          over$: deadline$,
          onAck: ({ resource, status }) => printLine(`${resource}: ${status}`),
          onRetry: logHooks(logger).onSignalsFailed,
        })
      : undefined;
    const newest = await newestOnceReadable(kafka, names.certificates, lists, acks, deadline$);
    const findings: ListFinding[] = [];
    for (const [nth, resource] of resources.entries()) {
      const published = newest[nth];
      const topic = names.records(resource);
      const whyNot = acks && whyNotFresh(acks.get(resource), timeout);
      const result = await tryVerify(async () => {
        if (whyNot !== undefined) return { why: whyNot };
        if (published) return verifyList({ kafka, registry, topic, published, file });
        await requireSome(kafka, [topic]);
        return { why: NO_CERTIFICATE };
      });
      findings.push({ account, resource, result });
    }
    process.stdout.write(flags.json ? verifyJson(findings) : verifyTable(findings));
    return findings.every(isRight);
  } finally {
    await registry.close();
  }
}

/**
 * Requests new full scans from the running service, and waits until their certificates are acknowledged or `waiting.over$` emits. Resolves
 * to the acknowledgement of each list; lists without an acknowledgement are left out.
 *
 * @throws CellarstreamError `POSITION` if there is no signals topic; `KAFKA_UNREACHABLE`, `KAFKA_REFUSED`.
 */
async function freshCertificates(
  topic: SignalTopic,
  account: string,
  resources: readonly Resource[],
  waiting: AcksOptions<CertifyAck>,
): Promise<ReadonlyMap<string, CertifyAck>> {
  const acknowledgements = await sendRequest(topic, {
    type: 'certify',
    id: randomUUID(),
    account,
    resources: [...resources],
    requested_at: new Date().toISOString(),
  });
  const acks = await acknowledgements(waiting);
  await topic.close();
  return acks;
}

/**
 * Resolves to the newest certificate of each list; undefined for a list without one. Reads the certificates repeatedly until they are at
 * least as new as the acknowledged ones (`acks`), or until `deadline$` emits.
 */
function newestOnceReadable(
  kafka: Kafka,
  topic: string,
  lists: readonly { readonly account: string; readonly resource: Resource }[],
  acks: ReadonlyMap<string, CertifyAck> | undefined,
  deadline$: Observable<unknown>,
): Promise<readonly (PublishedCertificate | undefined)[]> {
  const isReadable = (newest: readonly (PublishedCertificate | undefined)[]) =>
    lists.every(
      ({ resource }, nth) =>
        (newest[nth]?.certificate.number ?? -1) >= (acks?.get(resource)?.number ?? -1),
    );
  return lastValueFrom(
    defer(async () => (await newestCertificates(kafka, topic, lists)).newest).pipe(
      // Committed messages become readable only after earlier open transactions on the same partition have ended.
      repeat({ delay: () => timer(CHECK_EVERY_MS).pipe(takeUntil(deadline$)) }),
      takeWhile((newest) => !isReadable(newest), true),
    ),
  );
}

/**
 * Throws unless at least one of the topics exists.
 *
 * @throws CellarstreamError `POSITION`.
 */
async function requireSome(kafka: Kafka, topics: readonly string[]): Promise<void> {
  if ((await existing({ kafka }, topics)).size > 0) return;
  throw missingTopicError(topics[0]!, 'check TOPIC_PREFIX and --account');
}

/** Returns an observable that emits when the command must stop waiting: after this many seconds, or at a signal to stop, such as SIGINT. */
function inTime(seconds: number): Observable<unknown> {
  const over$ = new ReplaySubject<unknown>(1);
  merge(stopSignals(), timer(seconds * 1_000)).subscribe(over$);
  return over$;
}

const NO_CERTIFICATE =
  'there is no certificate yet: the service publishes one after each full scan of the list (--fresh requests one)';

/**
 * Returns why a list has no fresh certificate; undefined if it has one (acknowledged as `done`). `ack` is the service's acknowledgement;
 * undefined if none arrived within `seconds`.
 */
function whyNotFresh(ack: CertifyAck | undefined, seconds: number): string | undefined {
  if (!ack) {
    return `no fresh certificate within ${seconds} s (the service publishes one after a full scan of the list): check that the service runs this account; if the list is long, set a longer --timeout`;
  }
  if (ack.status === 'done') return undefined;
  return `no fresh certificate: ${ack.message ?? ack.status}`;
}

/** Runs `work`, the check of one list. Resolves to its result, or to the text of an error that concerns only that list. */
async function tryVerify<T>(work: () => Promise<T>): Promise<T | { readonly why: string }> {
  try {
    return await work();
  } catch (error) {
    if (!isResourceError(error)) throw error;
    return { why: describeError(error) };
  }
}

import type { Kafka } from 'kafkajs';
import { merge, NEVER, ReplaySubject, timer } from 'rxjs';
import type { Observable } from 'rxjs';
import { CellarstreamError, describeError, isOfOneResource } from '../core/errors.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import type { Resource } from '../resources/resources.ts';
import { topicNames } from '../schemas/events/topics.ts';
import { FIRST_RETRIES, openLinks } from '../sinks/client/open-kafka.ts';
import { existing, noTopic } from '../sinks/client/topic-facts.ts';
import type { CertifyAck } from '../sinks/signals/signals.ts';
import { freshCertificates, newestOnceReadable } from './fresh-certificates.ts';
import { logHooks } from './log-hooks.ts';
import { replayedPrefix, replaySettings } from './replayed-account.ts';
import { stopSignals } from './stop.ts';
import { verifyList } from './verified-list.ts';
import { isRight, verifyJson, verifyTable } from './verify-lines.ts';
import type { ListFinding } from './verify-lines.ts';

export interface VerifyFlags {
  /** Of a fleet. */
  readonly account?: string;
  readonly json?: boolean;
  /** Whether the running service is asked for new certificates. */
  readonly fresh?: boolean;
  /** So long it is waited for, in seconds. */
  readonly timeout: number;
  /** A copy of the one list that is named. */
  readonly file?: string;
}

/**
 * `cellarstream verify`: holds topics against the newest certificates, and a copy against both. Nothing is believed of the
 * service but its certificates. Resolves to whether all is right.
 */
export async function verifyCommand(
  named: readonly Resource[],
  flags: VerifyFlags,
): Promise<boolean> {
  if (flags.file !== undefined && named.length !== 1) {
    throw new CellarstreamError('SETTINGS', '--file is a copy of one list: name that one');
  }
  const config = replaySettings({ env: process.env, cwd: process.cwd() }, flags.account);
  const logger = await createLogger({ level: config.logLevel });
  const log = kafkaLogCreator(logger);
  const { kafka, registry } = openLinks(config, { log, kafkaRetries: FIRST_RETRIES });
  const resources = named.length > 0 ? [...new Set(named)] : config.resources;
  try {
    const account = flags.account ?? config.account;
    const prefix = await replayedPrefix(config, flags.account, kafka);
    const names = topicNames(prefix, config.topics.sharedPrefix);
    const { onSignalsFailed } = logHooks(logger);
    const asked = {
      ...{ kafka, topic: names.signals, account, resources },
      over$: flags.fresh ? inTime(flags.timeout) : NEVER,
      onAck: ({ resource, status }: CertifyAck) => say(`${resource}: ${status}`),
      onRetry: onSignalsFailed,
    };
    // A name that is spelled wrong would be waited for in vain.
    if (flags.fresh) await requireSome(kafka, resources.map(names.records));
    const acks = flags.fresh ? await freshCertificates(asked) : undefined;
    const newest = await newestOnceReadable(asked, names.certificates, acks ?? new Map());
    const findings: ListFinding[] = [];
    for (const [nth, resource] of resources.entries()) {
      const published = newest[nth];
      const why = acks && whyNotFresh(acks.get(resource), flags.timeout);
      const topic = names.records(resource);
      const found =
        why !== undefined
          ? { why }
          : published === undefined
            ? await attempt(async () => {
                await requireSome(kafka, [topic]);
                return { why: NO_CERTIFICATE };
              })
            : await attempt(() =>
                verifyList({
                  ...{ kafka, registry, topic, published, file: flags.file },
                  now: Date.now(),
                }),
              );
      findings.push({ account, resource, found });
    }
    process.stdout.write(flags.json ? verifyJson(findings) : verifyTable(findings));
    return findings.every(isRight);
  } finally {
    await registry.close();
  }
}

/** @throws CellarstreamError `POSITION` when none of these topics is there. */
async function requireSome(kafka: Kafka, topics: readonly string[]): Promise<void> {
  if ((await existing({ kafka }, topics)).size > 0) return;
  const remedy = 'is TOPIC_PREFIX that of the service, and --account one of its fleet?';
  throw noTopic(topics[0]!, remedy);
}

/** When waiting is over: after so many seconds, or by a signal. */
function inTime(seconds: number): Observable<unknown> {
  const over$ = new ReplaySubject<unknown>(1);
  merge(stopSignals(), timer(seconds * 1_000)).subscribe(over$);
  return over$;
}

const NO_CERTIFICATE =
  'there is no certificate yet: the service publishes one after each complete reading of the list (--fresh asks for it)';

/** Undefined where there is a fresh one. */
function whyNotFresh(ack: CertifyAck | undefined, seconds: number): string | undefined {
  if (!ack) {
    return `no fresh certificate within ${seconds} s: does a service run this account? A long list takes longer (--timeout)`;
  }
  if (ack.status === 'done') return undefined;
  return `no fresh certificate: ${ack.message ?? ack.status}`;
}

/** What is wrong with one list is said in its line. */
async function attempt<T>(work: () => Promise<T>): Promise<T | { readonly why: string }> {
  try {
    return await work();
  } catch (error) {
    if (!isOfOneResource(error)) throw error;
    return { why: describeError(error) };
  }
}

function say(line: string): void {
  process.stderr.write(`${line}\n`);
}

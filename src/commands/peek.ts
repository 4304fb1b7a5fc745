import {
  defer,
  endWith,
  filter,
  firstValueFrom,
  ignoreElements,
  map,
  merge,
  NEVER,
  of,
  switchMap,
  takeUntil,
  takeWhile,
} from 'rxjs';
import { openApi } from '../account/api.ts';
import { keyFieldsOf } from '../pipeline/choose-key.ts';
import { steadyScheduler } from '../core/clock.ts';
import type { Resource } from '../config/config.ts';
import { STARTUP_RETRIES, openKafka } from '../sinks/open-kafka.ts';
import { SHARED_QUOTA, LOGIN_QUOTA } from '../account/ledger/ledger-record.ts';
import { createLogger, kafkaLogCreator } from '../observe/log.ts';
import { openGuest } from '../account/permits/open-guest.ts';
import { openAccount } from '../account/account.ts';
import { quotas } from '../account/quotas.ts';
import { stringifyJson } from '../schemas/json/json.ts';
import type { JsonObject } from '../schemas/json/json.ts';
import { changeFacts } from '../pipeline/publish/messages.ts';
import { diff } from '../streams/diff/diff.ts';
import { ignoredFields } from '../streams/paging/standstill.ts';
import { pages } from '../streams/paging/pages.ts';
import { splitRecords } from '../streams/records/records.ts';
import { keyOfFields } from '../streams/records/key-of.ts';
import { listNamed } from '../description/description.ts';
import { VERSION } from '../core/version.ts';
import { LineWriter } from './line-writer.ts';
import { logHooks } from './log-hooks.ts';
import { hasKafka, oneAccount, processSource } from './one-account.ts';
import { logSettings } from './service-log.ts';
import { stopSignals } from './stop.ts';

/** Maximum number of requests that `peek` declares in the ledger at once, or asks a running service to permit at once. */
const MAX_AT_A_TIME = 10;
/** Maximum time to try to reach Kafka, in ms. After that, requests are sent to the API without being declared in Kafka. */
const KAFKA_TIMEOUT_MS = 5_000;

/**
 * `cellarstream peek RESOURCE`: reads a list once and prints the events that an initial snapshot would publish, one JSON object per line.
 *
 * `peek` does not need Kafka. If KAFKA_BROKERS is set, a running service counts the requests of `peek` against the account's quota.
 */
export async function peekCommand(
  resource: Resource,
  { limit = Infinity, account }: { readonly limit?: number; readonly account?: string },
): Promise<void> {
  const source = processSource();
  const config = oneAccount(source, account, ['api']);
  const logger = await createLogger({ level: config.logLevel });
  logSettings(logger, config, source);
  const { onRetry, onUnseen, onVolatile } = logHooks(logger);
  const scheduler = steadyScheduler;
  const pageSize = Math.min(config.poll.pageSize, Math.max(2, limit));
  // In addition to the pages: one request to determine the key fields, and one spare.
  const requests = Math.min(MAX_AT_A_TIME, 2 + Math.ceil(limit / pageSize));
  const guest = hasKafka(config)
    ? openGuest({
        kafka: openKafka(config, { log: kafkaLogCreator(logger), kafkaRetries: STARTUP_RETRIES }),
        config,
        // A quota that does not exist is ignored.
        batchSizes: { [LOGIN_QUOTA]: 1, [SHARED_QUOTA]: requests, [resource]: requests },
        patienceMs: Infinity,
        kafkaPatienceMs: KAFKA_TIMEOUT_MS,
        onUndeclared: (error) =>
          logger.warn(
            { event: 'uncounted', err: error },
            'the requests of this command could not be declared in Kafka (see err): a service that is running for the same account does not count them, so that both together may exceed the quota',
          ),
      })
    : undefined;
  const quota = quotas({ config, scheduler, ...(guest && { ledger: guest.permits }) });
  const api = openApi({
    config: config.api,
    description: config.description,
    stateDir: config.stateDir,
    loginLimit: quota.login,
    reportsOf: (name) => quota.reportsOf(name),
    ...(guest && { maySend: () => guest.permits.isBatchValid() }),
    scheduler,
    hooks: { onRetry },
  });
  const { prefix } = config.topics;
  const origin = { account: config.account, resource, prefix, version: VERSION };
  const list = listNamed(config.description, resource);
  const onUnmatchedField = (field: string) => onUnseen({ resource, field });
  const reader = openAccount({ config, api, quotas: quota }).list(list, { onUnmatchedField });
  const { volatile } = reader;
  const leftOut = ignoredFields(volatile.pointers, (fields) => onVolatile({ resource, fields }));
  const { poll } = quota.lanes(resource, false);
  const lines = new LineWriter(process.stdout);
  let sequence = 0;

  const known = keyFieldsOf(list, config, []);
  const firstPage$ = defer(() => reader.pages()({ offset: 0, pageSize }, poll));
  const keyFields$ = known
    ? of(known)
    : firstPage$.pipe(
        map(({ data }) => data.map(({ json }) => json)),
        map((records) => keyFieldsOf(list, config, records)),
        filter((keyFields) => keyFields !== undefined), // an empty list has nothing to print
      );
  const records$ = keyFields$.pipe(
    map(keyOfFields),
    switchMap((keyOf) => {
      const request = reader.pages({ keyOf });
      return pages({
        request: (query) => request(query, poll),
        ...{ keyOf, list, pageSize, leftOut, plan: reader.plan },
        permit: () => defer(() => lines.flush()), // a slow reader of the output delays the next page
      }).pipe(map(({ answer }) => ({ records: splitRecords(answer.data).keyed })));
    }),
  );
  const lines$ = records$.pipe(
    diff({ isNew: () => false, volatile }),
    map(({ changes }) => {
      for (const change of changes.slice(0, limit - sequence)) {
        sequence += 1;
        const { key, before, after } = change;
        const facts = changeFacts(change, sequence, origin, Date.now());
        const event = { key, before, after, ...facts };
        void lines.write(stringifyJson(event as unknown as JsonObject)); // JSON, but its interfaces have no index signature
      }
    }),
    takeWhile(() => sequence < limit),
    takeUntil(stopSignals()),
  );
  const over$ = lines$.pipe(ignoreElements(), endWith(undefined));
  const noPermits$ = (guest?.permits.batches$ ?? NEVER).pipe(ignoreElements());
  try {
    await firstValueFrom(merge(over$, noPermits$));
  } finally {
    await lines.flush(); // the end of the process would cut off unwritten lines
    await api.close();
    await guest?.close();
  }
}

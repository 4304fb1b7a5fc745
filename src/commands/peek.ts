import { filter, lastValueFrom, map, of, switchMap, takeUntil, takeWhile } from 'rxjs';
import { openApi } from '../api.ts';
import { keyFieldsOf } from '../choose-key.ts';
import { steadyScheduler } from '../clock.ts';
import { loadConfig } from '../config.ts';
import type { Resource } from '../config.ts';
import { createLogger } from '../log.ts';
import { personalFieldsOf } from '../personal-fields-of.ts';
import { quotas } from '../quotas.ts';
import { stringifyJson } from '../schemas/json.ts';
import { changeFacts } from '../sinks/messages.ts';
import { diff } from '../streams/diff.ts';
import { hidingList } from '../streams/hiding-list.ts';
import { leftOut } from '../streams/left-out.ts';
import { pages } from '../streams/pages.ts';
import { keyOfFields, keyRecords } from '../streams/records.ts';
import { unseenFields } from '../unseen-fields.ts';
import { refuseUnsupported } from '../unsupported.ts';
import { VERSION } from '../version.ts';
import { logHooks } from './log-hooks.ts';
import { logSettings } from './log-settings.ts';
import { stopSignals } from './stop.ts';
import { jsonOf } from '../streams/sent-record.ts';
import { volatileFields } from '../streams/volatile-fields.ts';
import { volatilePointers } from '../volatile-fields-of.ts';

/**
 * `cellarstream peek RESOURCE`: one whole read, as the events that a first read would publish, a JSON
 * object a line.
 */
export async function peekCommand(
  resource: Resource,
  { limit = Infinity }: { readonly limit?: number },
): Promise<void> {
  const config = loadConfig({ env: process.env, cwd: process.cwd(), needs: ['api'] });
  refuseUnsupported(config);
  const logger = await createLogger({ level: config.logLevel });
  logSettings(logger, config);
  const { onRetry, onUnseen, onVolatile } = logHooks(logger);
  const quota = quotas({ config, scheduler: steadyScheduler });
  const api = openApi({
    config: config.api,
    loginLimit: quota.login,
    scheduler: steadyScheduler,
    onRetry,
  });
  const pointers = volatilePointers(config, resource);
  const anchorsWithout = leftOut(pointers, (fields) => onVolatile({ resource, fields }));
  const origin = { account: config.account, resource, version: VERSION };
  const lookedAt = unseenFields({
    pii: config.pii,
    volatile: pointers,
    resource,
    onUnseen: (field) => onUnseen({ resource, field }),
  });
  const request = hidingList(lookedAt(api.list(resource)), personalFieldsOf(config.pii, resource));
  const { poll } = quota.lanes(resource, false);
  const pageSize = Math.min(config.poll.pageSize, Math.max(2, limit));
  let sequence = 0;

  const known = keyFieldsOf(resource, config, []);
  const keyFields$ = known
    ? of(known)
    : request({ offset: 0, pageSize }, poll).pipe(
        map(({ data }) => keyFieldsOf(resource, config, data.map(jsonOf))),
        filter((keyFields) => keyFields !== undefined), // an empty list has nothing to print
      );
  const records$ = keyFields$.pipe(
    map(keyOfFields),
    switchMap((keyOf) =>
      pages({
        request: (query) => request(query, poll),
        keyOf,
        pageSize,
        leftOut: anchorsWithout,
      }).pipe(map(({ answer }) => ({ records: keyRecords(answer.data, keyOf).keyed }))),
    ),
  );
  const lines$ = records$.pipe(
    diff({ isNew: () => false, volatile: volatileFields(pointers) }),
    map(({ changes }) => {
      for (const change of changes.slice(0, limit - sequence)) {
        sequence += 1;
        const { key, before, after } = change;
        const { changed, source, ...facts } = changeFacts(change, sequence, origin, Date.now());
        const event = {
          key,
          before,
          after,
          ...facts,
          changed: [...changed],
          source: { ...source },
        };
        process.stdout.write(`${stringifyJson(event)}\n`);
      }
    }),
    takeWhile(() => sequence < limit),
    takeUntil(stopSignals()),
  );
  await lastValueFrom(lines$, { defaultValue: undefined });
  await api.close();
}

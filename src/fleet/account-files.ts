import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { distinctUntilChanged, map, scan, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { accountNames, loadAccounts } from '../config/accounts.ts';
import type { AccountFile, AccountsOptions } from '../config/accounts.ts';
import { credentialText } from '../config/key-digest.ts';

/**
 * Interval at which the folder of account files is read, in ms. File system events are not used, because volumes such as Kubernetes' config
 * maps do not raise all of them.
 */
const CHECK_FOLDER_EVERY_MS = 2_000;

export type AccountFiles = ReadonlyMap<string, AccountFile>;

/**
 * Emits the accounts that have a file in the folder: at once, and whenever a file is added, changed or removed. An unchanged account is
 * emitted as the same object. If the folder can't be read at the start, errors with `SETTINGS`; later, the last known contents stay in
 * effect.
 */
export function watchAccounts(
  options: AccountsOptions & { readonly scheduler: SchedulerLike },
): Observable<AccountFiles> {
  const { scheduler, ...load } = options;
  let last: string | undefined;
  const look = (): string => {
    try {
      return (last = textOf(load.config.accountsDir));
    } catch (error) {
      if (last === undefined) throw error;
      return last;
    }
  };
  return timer(0, CHECK_FOLDER_EVERY_MS, scheduler).pipe(
    map(look),
    distinctUntilChanged(),
    map(() => loadAccounts(load)),
    scan((before: AccountFiles, now) => {
      const unchanged = [...before].filter(
        ([name, file]) => comparable(file) === comparable(now.get(name)),
      );
      return new Map([...now, ...unchanged]);
    }, new Map()),
  );
}

/** Returns the names of the accounts whose files are valid, so that an instance can serve them. */
export function servableAccounts(files: AccountFiles): readonly string[] {
  return [...files].flatMap(([account, file]) => ('config' in file ? [account] : []));
}

/** Returns the contents of all account files as one text, to detect changes. */
function textOf(folder: string): string {
  const read = (name: string) => {
    try {
      return readFileSync(join(folder, `${name}.env`), 'utf8');
    } catch (error) {
      return String(error);
    }
  };
  return JSON.stringify(accountNames(folder).map((name) => [name, read(name)]));
}

/** Serializes an account's configuration or error for comparison. The values of secrets are added, because JSON redacts them. */
function comparable(file: AccountFile | undefined): string | undefined {
  if (!file) return undefined;
  if ('error' in file) return `error: ${String(file.error)}`;
  const { config } = file;
  return JSON.stringify([config, credentialText(config.api), config.pii.hmacKey?.reveal()]);
}

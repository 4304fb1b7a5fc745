import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { distinctUntilChanged, map, scan, timer } from 'rxjs';
import type { Observable, SchedulerLike } from 'rxjs';
import { accountNames, loadAccounts } from '../config/accounts.ts';
import type { AccountFile, AccountsOptions } from '../config/accounts.ts';

/** How often the folder is looked at, ms. Watching it by events misses what is mounted, as Kubernetes' config maps are. */
const LOOK_EVERY_MS = 2_000;

export type AccountFiles = ReadonlyMap<string, AccountFile>;

/**
 * The accounts of the folder: at once, and whenever a file comes, changes or goes. Of one that has not changed the same object is
 * given again. While the folder can't be read, what was read last stays; at the beginning that is an error, `SETTINGS`.
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
  return timer(0, LOOK_EVERY_MS, scheduler).pipe(
    map(look),
    distinctUntilChanged(),
    map(() => loadAccounts(load)),
    scan((before: AccountFiles, now) => {
      const same = [...now].map(([name, file]) => {
        const known = before.get(name);
        return [name, known && isSame(known, file) ? known : file] as const;
      });
      return new Map(same);
    }, new Map()),
  );
}

/** All that is in the files, in one text. */
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

function isSame(a: AccountFile, b: AccountFile): boolean {
  if ('error' in a || 'error' in b) {
    return 'error' in a && 'error' in b && String(a.error) === String(b.error);
  }
  return textOfConfig(a) === textOfConfig(b);
}

/** Secrets say what they are not: they are put in by hand, and the text is kept nowhere. */
function textOfConfig({ config }: Extract<AccountFile, { config: unknown }>): string {
  return JSON.stringify([config, config.api.key.reveal(), config.pii.hmacKey?.reveal()]);
}

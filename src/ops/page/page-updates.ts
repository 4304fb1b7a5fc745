// How a page keeps itself up to date, as far as that needs no browser: addresses to ask, views to update, a new version to notice.

/** Where a page asks: beside itself, wherever a proxy has put it. */
export interface Addresses {
  readonly url: string;
  /** Of the same, once. */
  readonly statusUrl: string;
}

/** @param page `account`: it is that of one account of a fleet, at `.../accounts/NAME`. Else it is at the top. */
export function addressesOf(page: string | undefined, pathname: string): Addresses {
  if (page !== 'account') return { url: 'status/events', statusUrl: 'status' };
  const query = `?account=${encodeURIComponent(pathname.split('/').at(-1)!)}`;
  return { url: `../status/events${query}`, statusUrl: `../status${query}` };
}

/**
 * Brings views up to date; one that fails keeps no other from it.
 *
 * @param onError Told of each error.
 * @returns Whether none has failed.
 */
export function updateAll<T>(
  views: readonly ((told: T) => void)[],
  told: T,
  onError: (error: unknown) => void,
): boolean {
  let isWhole = true;
  for (const update of views) {
    try {
      update(told);
    } catch (error) {
      isWhole = false;
      onError(error);
    }
  }
  return isWhole;
}

/**
 * What is to be told of each version that the service says it is: `onChange` is called once, when it is
 * another than the first. A page that is left open outlives the service that it is of.
 */
export function newVersion(onChange: () => void): (version: string) => void {
  let first: string | undefined;
  let isTold = false;
  return (version) => {
    first ??= version;
    if (version === first || isTold) return;
    isTold = true;
    onChange();
  };
}

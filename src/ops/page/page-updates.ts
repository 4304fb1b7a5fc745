// The parts of a live page that need no browser: the URLs to request, updating views, and detecting a new version of the service.

/** URLs that a status page requests. They are relative to the page's own URL, so that they work behind a proxy that adds a path prefix. */
export interface Addresses {
  readonly url: string;
  readonly statusUrl: string;
}

/**
 * Returns the URLs that a status page requests.
 *
 * @param page Attribute `data-page` of the page's body: `account` for the page of one account of a fleet, at `.../accounts/NAME`. Any other
 * value: the page at the root path.
 */
export function addressesOf(page: string | undefined, pathname: string): Addresses {
  if (page !== 'account') return { url: 'status/events', statusUrl: 'status' };
  const query = `?account=${encodeURIComponent(pathname.split('/').at(-1)!)}`;
  return { url: `../status/events${query}`, statusUrl: `../status${query}` };
}

/** Updates all views of a web page with `status`. If a view throws, the others are still updated. Returns whether no view has thrown. */
export function updateAll<T>(
  views: readonly ((status: T) => void)[],
  status: T,
  onError: (error: unknown) => void,
): boolean {
  let succeeded = true;
  for (const update of views) {
    try {
      update(status);
    } catch (error) {
      succeeded = false;
      onError(error);
    }
  }
  return succeeded;
}

/**
 * Returns a function to be called with each version that the service reports. It calls `onChange` once, when a version differs from the
 * first one.
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

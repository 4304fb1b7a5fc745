/** Where a page asks: beside itself, wherever a proxy has put it. */
export interface Addresses {
  /** Of the events. */
  readonly url: string;
  /** Of the same, once. */
  readonly statusUrl: string;
}

/**
 * @param page `account`: it is that of one account of a fleet, at `.../accounts/NAME`. Else it is at the top.
 */
export function addressesOf(page: string | undefined, pathname: string): Addresses {
  if (page !== 'account') return { url: 'status/events', statusUrl: 'status' };
  const query = `?account=${encodeURIComponent(pathname.split('/').at(-1)!)}`;
  return { url: `../status/events${query}`, statusUrl: `../status${query}` };
}

import type { Patch, Endpoint, RecordKey } from './resources.ts';
import { Random } from './random.ts';

/** A fault to inject into responses, with the conditions that a request must meet and how often the fault applies. */
export type FaultSpec = FaultKind & {
  /** Endpoint whose requests are affected. Default `*`: all endpoints. */
  readonly endpoint?: Endpoint | '*';
  /** Number of requests that the fault affects before it ends. Default: unlimited. */
  readonly times?: number;
  /** Affects only every n-th request that meets the conditions. Default 1: every request. */
  readonly every?: number;
  /** Probability with which the fault affects a request that meets its conditions. The seed determines the draws. Default 1. */
  readonly probability?: number;
  /** Limits the fault to requests whose page contains the record with this key. Default: all requests. */
  readonly holding?: RecordKey;
  /**
   * Affects only requests with a `pageSize` above this number; a request without `pageSize` counts as one with 1000. Default: no such
   * condition.
   */
  readonly pageSizeOver?: number;
  /** Affects only requests with an `offset` of at least this number. Default: no such condition. */
  readonly offsetFrom?: number;
  /** Whether the fault affects only requests with `modifiedFromDate` or `modifiedToDate`. Default false. */
  readonly dated?: boolean;
  /** Whether only requests with a `modifiedToDate` later than the server's clock are affected. Default false. */
  readonly endsInFuture?: boolean;
  /** Limits the fault to requests for which `offset` plus `pageSize` is more than this number. Default: no such condition. */
  readonly endOver?: number;
};

/** Kinds of faults, each with its parameters. */
export type FaultKind =
  /** Responds with this status, body and headers. A body that is an object is sent as JSON. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body?: string | object;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Closes the connection without a response. */
  | { readonly kind: 'drop' }
  /** Sends a `Content-Length` for the whole response, but only half of the body, and closes the connection. */
  | { readonly kind: 'truncate' }
  /** Sends half of the response body, then nothing, and leaves the connection open until the client closes it. */
  | { readonly kind: 'stall' }
  /** Reads the records at once but sends the response `ms` later, so the response may be outdated when it is sent. */
  | { readonly kind: 'slow'; readonly ms: number }
  /**
   * Responds as a cache in front of the API does: a list request that is repeated within `ms` gets the same page again, with the original
   * `Date`. An `Age` header is added unless `sendsAge` is false.
   */
  | { readonly kind: 'cached'; readonly ms: number; readonly sendsAge?: boolean }
  /** Responds with 200 and a page of HTML instead of JSON. */
  | { readonly kind: 'garbage' }
  /** Responds with 403 and a page of HTML, as a firewall in front of the API does. */
  | { readonly kind: 'firewall' }
  | PageFault;

/** Faults in a page of a list: the response is well-formed, but has the wrong records. Page faults never affect logins. */
export type PageFault =
  /**
   * Repeats some records of the page, chosen by the seed. Each copy follows its original and is identical to it, or altered by `patch`. The
   * pagination does not count the copies.
   */
  | {
      readonly kind: 'repeat';
      /** Number of records of the page that are repeated, once each. If the page has fewer records, all are repeated. Default 1. */
      readonly records?: number;
      readonly patch?: Patch;
    }
  /** Responds with a page whose array of records (`data`) is empty. */
  | {
      readonly kind: 'empty';
      /**
       * Pagination that is sent with the empty array: that of the page with its records (`full`), or that of an empty list (`empty`).
       * Default `full`.
       */
      readonly pagination?: 'full' | 'empty';
    };

export function pageFault(fault: FaultKind | undefined): PageFault | undefined {
  return fault?.kind === 'repeat' || fault?.kind === 'empty' ? fault : undefined;
}

/** Properties of a list request that decide which faults apply. */
export interface FaultTarget {
  readonly offset: number;
  readonly pageSize: number;
  readonly dated: boolean;
  readonly endsInFuture: boolean;
  readonly holds: (key: RecordKey) => boolean;
}

interface Fault {
  readonly spec: FaultSpec;
  matched: number;
  left: number;
}

export class Faults {
  readonly #random: Random;
  readonly #faults = new Set<Fault>();

  constructor(seed: number) {
    this.#random = new Random(seed, 0xfa17);
  }

  /** Adds a fault. @returns a function that removes it. */
  add(spec: FaultSpec): () => void {
    const fault = { spec, matched: 0, left: spec.times ?? Infinity };
    this.#faults.add(fault);
    return () => void this.#faults.delete(fault);
  }

  /**
   * Returns the first fault that applies to a request, and counts the request in the fault's `times`; undefined if no fault applies.
   *
   * @param asked Properties of the list request; undefined for a login.
   */
  strike(endpoint: Endpoint, asked?: FaultTarget): FaultKind | undefined {
    for (const fault of this.#faults) {
      const { endpoint: target = '*', every = 1, probability = 1 } = fault.spec;
      if (target !== '*' && target !== endpoint) continue;
      const isOfLists = fault.spec.kind === 'cached' || pageFault(fault.spec) !== undefined;
      if (endpoint === 'login' && isOfLists) continue;
      if (!concerns(fault.spec, asked)) continue;
      if (++fault.matched % every !== 0) continue;
      if (probability < 1 && !this.#random.chance(probability)) continue;
      if (--fault.left <= 0) this.#faults.delete(fault);
      return fault.spec;
    }
    return undefined;
  }
}

/** Whether a request meets the fault's conditions, except `endpoint`, `every` and `probability`. */
function concerns(
  { holding, pageSizeOver, offsetFrom, endOver, dated, endsInFuture }: FaultSpec,
  asked: FaultTarget | undefined,
): boolean {
  if (pageSizeOver !== undefined && !(asked && asked.pageSize > pageSizeOver)) return false;
  if (offsetFrom !== undefined && !(asked && asked.offset >= offsetFrom)) return false;
  if (dated === true && asked?.dated !== true) return false;
  if (endsInFuture === true && asked?.endsInFuture !== true) return false;
  if (endOver !== undefined && !(asked && asked.offset + asked.pageSize > endOver)) return false;
  return holding === undefined || asked?.holds(holding) === true;
}

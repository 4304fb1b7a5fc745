// What can go wrong with requests, and which requests it strikes.

import type { Patch, Endpoint, RecordKey } from './resources.ts';
import { Random } from './random.ts';

/** What goes wrong, with which requests, and how often. */
export type FaultSpec = FaultKind & {
  /** Requests to what. Default `*`: to any endpoint. */
  readonly endpoint?: Endpoint | '*';
  /** How often in all; it lifts itself after that. Default: until it is lifted. */
  readonly times?: number;
  /** Only every n-th of the requests it is meant for. Default 1. */
  readonly every?: number;
  /** Only so likely with each of those, by the seed. Default 1. */
  readonly probability?: number;
  /** Only requests whose page holds the record of this key. Default: any. */
  readonly holding?: RecordKey;
  /** Only requests with a `pageSize` above this. Default: any. */
  readonly pageSizeOver?: number;
  /** Only requests with at least this `offset`. Default: any. */
  readonly offsetFrom?: number;
  /** Only requests with modification dates. Default: any. */
  readonly dated?: boolean;
  /** Only requests with a `modifiedToDate` later than the server's clock. Default: any. */
  readonly endsInFuture?: boolean;
  /** Only requests whose `offset` and `pageSize` add up to more than this. Default: any. */
  readonly endOver?: number;
};

/** What can go wrong with a request. */
export type FaultKind =
  /** Answers with this status; an object as body is sent as JSON. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body?: string | object;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** Closes the connection without an answer. */
  | { readonly kind: 'drop' }
  /** Announces the whole answer, sends half of it and closes the connection. */
  | { readonly kind: 'truncate' }
  /** Sends half of the answer, then nothing for as long as the client stays. */
  | { readonly kind: 'stall' }
  /** Reads the records at once and answers this many ms later: with what is old by then. */
  | { readonly kind: 'slow'; readonly ms: number }
  /**
   * Answers as a cache in front of the API does: a list request that was made before gets the page of then, for `ms`. With an `Age`
   * header unless `sendsAge` is false, and with the `Date` of then. Logins are not struck.
   */
  | { readonly kind: 'cached'; readonly ms: number; readonly sendsAge?: boolean }
  /** Answers 200 with a page of HTML. */
  | { readonly kind: 'garbage' }
  /** Answers 403 with a page of HTML, as a firewall in front of the API does. */
  | { readonly kind: 'firewall' }
  | PageFault;

/** What goes wrong with the page of a list; logins are not struck, whatever the endpoint. */
export type PageFault =
  /**
   * Some records of the page, chosen by the seed, come twice, each copy behind its original: the
   * same bytes, or with a patch. `data` grows by the copies; the pagination says nothing of them.
   */
  | {
      readonly kind: 'repeat';
      /** How many, at most all of the page. Default 1. */
      readonly records?: number;
      /** What the copies have otherwise. Default: nothing. */
      readonly patch?: Patch;
    }
  /** `data` is empty. */
  | {
      readonly kind: 'empty';
      /**
       * `full`: as if the records had come. `empty`: as of a list without records, with
       * `total_records` 0 and no next page. Default `full`.
       */
      readonly pagination?: 'full' | 'empty';
    };

/** The fault, if it is one of a page. */
export function pageFault(fault: FaultKind | undefined): PageFault | undefined {
  return fault?.kind === 'repeat' || fault?.kind === 'empty' ? fault : undefined;
}

/** The parts of a list request that decide which faults strike it. */
export interface Asked {
  readonly offset: number;
  readonly pageSize: number;
  /** Whether it has modification dates. */
  readonly dated: boolean;
  /** Whether its `modifiedToDate` is later than the server's clock. */
  readonly endsInFuture: boolean;
  /** Whether its page holds the record of a key. */
  readonly holds: (key: RecordKey) => boolean;
}

interface Fault {
  readonly spec: FaultSpec;
  met: number;
  left: number;
}

/** The faults in force, oldest first. */
export class Faults {
  readonly #random: Random;
  readonly #faults = new Set<Fault>();

  constructor(seed: number) {
    this.#random = new Random(seed, 0xfa17);
  }

  /** @returns a function that lifts the fault. */
  add(spec: FaultSpec): () => void {
    const fault = { spec, met: 0, left: spec.times ?? Infinity };
    this.#faults.add(fault);
    return () => void this.#faults.delete(fault);
  }

  /**
   * The first fault that strikes this request; undefined if none does.
   *
   * @param asked undefined for a login.
   */
  strike(endpoint: Endpoint, asked?: Asked): FaultKind | undefined {
    for (const fault of this.#faults) {
      const { endpoint: target = '*', every = 1, probability = 1 } = fault.spec;
      if (target !== '*' && target !== endpoint) continue;
      const isOfLists = fault.spec.kind === 'cached' || pageFault(fault.spec) !== undefined;
      if (endpoint === 'login' && isOfLists) continue;
      if (!concerns(fault.spec, asked)) continue;
      if (++fault.met % every !== 0) continue;
      if (probability < 1 && !this.#random.chance(probability)) continue;
      if (--fault.left <= 0) this.#faults.delete(fault);
      return fault.spec;
    }
    return undefined;
  }
}

/** Whether a request is one of those that a fault is limited to. */
function concerns(
  { holding, pageSizeOver, offsetFrom, endOver, dated, endsInFuture }: FaultSpec,
  asked: Asked | undefined,
): boolean {
  if (pageSizeOver !== undefined && !(asked && asked.pageSize > pageSizeOver)) return false;
  if (offsetFrom !== undefined && !(asked && asked.offset >= offsetFrom)) return false;
  if (dated === true && asked?.dated !== true) return false;
  if (endsInFuture === true && asked?.endsInFuture !== true) return false;
  if (endOver !== undefined && !(asked && asked.offset + asked.pageSize > endOver)) return false;
  return holding === undefined || asked?.holds(holding) === true;
}

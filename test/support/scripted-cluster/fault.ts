import type { Answers, Api, Request } from './protocol.ts';

export interface Received<A extends Api = Api> extends Request<A> {
  /** Which broker, from 0. */
  readonly broker: number;
  /** Which of all connections, from 0. */
  readonly connection: number;
}

/** What becomes of a request, in place of an answer to what was carried out. */
export type Deed =
  | { readonly refuse: number; readonly partition?: number; readonly topic?: string }
  | { readonly omit: number }
  | { readonly answer: Answers[Api] }
  /** The part of the answer after the correlation id. */
  | { readonly bytes: Buffer }
  | 'lose request'
  | 'lose answer'
  | 'hang up before'
  | 'hang up after'
  | 'do as asked';

export interface Fault {
  readonly api: Api;
  /** Default 1. */
  readonly times?: number;
  readonly when?: (received: Received) => boolean;
  /** Comes before anything else; while it is pending the request is held back, its connection with it. */
  readonly first?: () => unknown;
  readonly deed?: Deed | ((received: Received) => Deed | Promise<Deed>);
  /** The answer says that the broker reads nothing more for so long, ms; of Metadata alone. */
  readonly throttleMs?: number;
}

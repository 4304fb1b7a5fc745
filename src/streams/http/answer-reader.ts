import type { IncomingHttpHeaders } from 'node:http';
import { errors } from 'undici';
import type { Dispatcher } from 'undici';
import { Body } from './body.ts';
import type { BodyPool } from './body.ts';

/** An answer as it was sent, read to its end. */
export interface SentAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Body;
}

export interface ReadOptions {
  /** Most bytes of a body as it is sent. */
  readonly maxBytes: number;
  /** Where the memory for the body is taken from. Default new memory. */
  readonly bodies?: BodyPool | undefined;
  /** The error of a body that is longer. */
  readonly tooLarge: () => Error;
  /** The error of a body that has begun and did not come to its end. */
  readonly cutOff: (cause: Error) => Error;
}

/** An answer that is being read. */
export interface Reading {
  readonly answer: Promise<SentAnswer>;
  /** The connection is closed, if it is not too late. */
  readonly abort: () => void;
}

/**
 * Asks, and reads the answer to its end. Each piece of it is copied as undici tells of it: a moment later another is where it was
 * (`shared-reads.ts`).
 */
export function readAnswer(
  dispatcher: Dispatcher,
  asked: Dispatcher.DispatchOptions,
  options: ReadOptions,
): Reading {
  let reader: Reader | undefined;
  const answer = new Promise<SentAnswer>((resolve, reject) => {
    reader = new Reader(options, resolve, reject);
    dispatcher.dispatch(asked, reader);
  });
  return { answer, abort: () => reader?.abort() };
}

/** Taken for a body before any of it has come: no server is believed that says more. */
const MOST_AHEAD = 4 * 2 ** 20;
const NOTHING = Buffer.alloc(0);

class Reader implements Dispatcher.DispatchHandler {
  readonly #options: ReadOptions;
  readonly #resolve: (answer: SentAnswer) => void;
  readonly #reject: (error: Error) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #isAborted = false;
  #head: Omit<SentAnswer, 'body'> | undefined;
  #memory: Buffer = NOTHING;
  #length = 0;

  constructor(
    options: ReadOptions,
    resolve: (answer: SentAnswer) => void,
    reject: (error: Error) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  abort(): void {
    this.#isAborted = true;
    this.#controller?.abort(new errors.RequestAbortedError());
  }

  /** Called again where the connection was closed before the request was sent. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isAborted) this.abort();
  }

  onResponseStart(
    _: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (status < 200) return; // another follows
    this.#head = { status, headers };
    const length = Number(headers['content-length'] ?? 0);
    if (length > 0) this.#makeRoom(Math.min(length, MOST_AHEAD));
  }

  onResponseData(_: Dispatcher.DispatchController, piece: Buffer): void {
    const length = this.#length + piece.length;
    if (length > this.#options.maxBytes) throw this.#options.tooLarge(); // undici aborts with it
    if (length > this.#memory.length) this.#makeRoom(Math.max(length, 2 * this.#memory.length));
    this.#memory.set(piece, this.#length);
    this.#length = length;
  }

  onResponseEnd(): void {
    const memory = this.#memory;
    const body = new Body(memory.subarray(0, this.#length), () => this.#giveBack(memory));
    this.#resolve({ ...this.#head!, body });
  }

  onResponseError(_: Dispatcher.DispatchController | null, cause: Error): void {
    this.#giveBack(this.#memory);
    this.#memory = NOTHING;
    this.#reject(this.#head ? this.#options.cutOff(cause) : cause);
  }

  #makeRoom(length: number): void {
    const old = this.#memory;
    this.#memory = this.#options.bodies?.take(length) ?? Buffer.allocUnsafe(length);
    this.#memory.set(old.subarray(0, this.#length));
    this.#giveBack(old);
  }

  #giveBack(memory: Buffer): void {
    this.#options.bodies?.giveBack(memory);
  }
}

import { errors, util } from 'undici';
import type { Dispatcher } from 'undici';
import { Body } from './body.ts';
import type { BodyPool } from './body.ts';

/** An answer as it was sent, read to its end. */
export interface SentAnswer {
  readonly status: number;
  /** By name, in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

export interface ReadOptions {
  /** Most bytes of a body as it is sent. */
  readonly maxBytes: number;
  /** Where the memory for the body is taken from. Default new memory. */
  readonly bodies?: BodyPool | undefined;
  /** The error of a body that is longer. */
  readonly tooLarge: () => Error;
  /** The error of an answer that has not come to its end, though its headers have come. */
  readonly cutOff: (cause: Error) => Error;
}

/** An answer that is being read. */
export interface Reading {
  /** Refused with an error of undici's until the headers have come, and with one of the options from then on. */
  readonly answer: Promise<SentAnswer>;
  /** Nobody waits for it any more: its connection is closed. */
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
  return { answer, abort: () => reader?.abort(new errors.RequestAbortedError()) };
}

/** Bytes that are taken for a body before any of it has come: no server is believed that says more. */
const MOST_AHEAD = 4 * 2 ** 20;
const NOTHING = Buffer.alloc(0);

/**
 * Told by the callbacks of undici 6, which 7 has too: Node's own undici, which is the global dispatcher where `fetch` was called
 * first, knows no others.
 */
class Reader implements Dispatcher.DispatchHandler {
  readonly #options: ReadOptions;
  readonly #resolve: (answer: SentAnswer) => void;
  readonly #reject: (error: Error) => void;
  #close: ((error: Error) => void) | undefined;
  #aborted: Error | undefined;
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

  abort(error: Error): void {
    this.#aborted = error;
    this.#close?.(error);
  }

  /** As the request is about to be sent; once more where its connection was closed before. */
  onConnect(close: (error?: Error) => void): void {
    this.#close = close;
    if (this.#aborted) close(this.#aborted);
  }

  onHeaders(status: number, rawHeaders: Buffer[]): boolean {
    if (status < 200) return true; // another follows
    const headers = util.parseHeaders(rawHeaders);
    this.#head = { status, headers };
    const length = Number(headers['content-length'] ?? 0);
    if (length > 0) this.#makeRoom(Math.min(length, MOST_AHEAD, this.#options.maxBytes));
    return true;
  }

  onData(piece: Buffer): boolean {
    if (this.#aborted) return true;
    const { maxBytes, tooLarge } = this.#options;
    const length = this.#length + piece.length;
    if (length > maxBytes) {
      this.abort(tooLarge());
      return true;
    }
    if (length > this.#memory.length) {
      this.#makeRoom(Math.min(Math.max(length, 2 * this.#memory.length), maxBytes));
    }
    this.#memory.set(piece, this.#length);
    this.#length = length;
    return true;
  }

  onComplete(): void {
    const memory = this.#memory;
    this.#memory = NOTHING; // it is the body's from now on
    const body = new Body(memory.subarray(0, this.#length), () => this.#giveBack(memory));
    this.#resolve({ ...this.#head!, body });
  }

  onError(cause: Error): void {
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

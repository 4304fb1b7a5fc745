// Reads the bytes of answers into memory that is used again: what sockets read into, and the copy of each answer.

import type { OnReadOpts, Socket } from 'node:net';
import { errors, util } from 'undici';
import type { Dispatcher } from 'undici';
import { Body } from './body.ts';
import type { BodyPool } from './body.ts';

/** An answer as it was sent, read to its end. */
interface SentAnswer {
  readonly status: number;
  /** By name, in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

interface ReadOptions {
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
 * ({@link sharedReads}).
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

/** Of one read: what Node would make new for each. */
const READ_BYTES = 65_536;

/**
 * For connections of HTTP/1.1 without pipelining: sockets read into one piece of memory. Whoever is told of a piece of an answer's
 * body looks at it at once, or copies it, and pauses nothing: a read that nobody takes goes on.
 *
 * With new memory for each read a page of 3 MB leaves as much behind. V8 counts that as if it were old, and marks all objects
 * every few pages: a sixth of the CPU of pages that have not changed, and half where the heap is limited.
 */
export function sharedReads(): OnReadOpts {
  /** What each socket reads: the answer to the request that ended at this byte of what it has written. */
  const answers = new WeakMap<Socket, { readonly asked: number; readonly isShared: boolean }>();
  const isShared = (socket: Socket, read: Buffer): boolean => {
    const { bytesWritten: asked } = socket;
    let answer = answers.get(socket);
    if (answer?.asked !== asked) {
      answer = { asked, isShared: beginsWithHead(read) };
      answers.set(socket, answer);
    }
    return answer.isShared;
  };
  return {
    buffer: Buffer.allocUnsafeSlow(READ_BYTES),
    // Node calls it as a method of the socket, though it does not say so.
    callback(this: Socket, length: number, memory: Buffer) {
      const read = memory.subarray(0, length);
      const goesOn = this.push(isShared(this, read) ? read : Buffer.from(read));
      // Behind the tick in which the socket says that there is something to be read, and before any other socket reads.
      process.nextTick(keepUnread, this);
      return goesOn;
    },
  };
}

/**
 * Whether an answer's first read has all of its head, and no other follows. undici looks at a head when it is whole, and keeps its
 * parts where they were read: of an answer whose head comes in pieces all is copied.
 */
function beginsWithHead(read: Buffer): boolean {
  const status = read.toString('latin1', 0, STATUS_CHARS);
  return FINAL_STATUS.test(status) && read.includes(END_OF_HEAD);
}

const FINAL_STATUS = /^HTTP\/1\.\d [2-5]\d\d/;
const STATUS_CHARS = 'HTTP/1.1 200'.length;
const END_OF_HEAD = '\r\n\r\n';

/** What nobody has looked at by now is to be there when somebody does. */
function keepUnread(socket: Socket): void {
  if (socket.readableLength === 0) return;
  socket.unshift(Buffer.from(socket.read() as Buffer));
}

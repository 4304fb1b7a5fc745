// Reads HTTP responses into reused memory: one buffer that all sockets read into, and a pooled buffer for each response body.

import type { OnReadOpts, Socket } from 'node:net';
import { errors, util } from 'undici';
import type { Dispatcher } from 'undici';
import { Body } from './body.ts';
import type { BodyPool } from './body.ts';

/** A complete HTTP response; its body may be compressed. */
interface RawResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Body;
}

interface ReadOptions {
  /** Maximum size of the body before decompression, in bytes. */
  readonly maxBytes: number;
  /** Pool for the buffer of the body. Without a pool the body gets a new buffer. */
  readonly bodies?: BodyPool | undefined;
  readonly tooLargeError: () => Error;
  /** Creates the error for a failure after the headers have arrived. */
  readonly truncatedError: (cause: Error) => Error;
}

export interface PendingResponse {
  /**
   * Resolves with the response. Rejects with undici's error if the request fails before the headers have arrived, and with the result of
   * `truncatedError` if it fails later.
   */
  readonly response: Promise<RawResponse>;
  readonly abort: () => void;
}

/**
 * Sends a request and reads the response. Each chunk is copied at once, as the next chunk from any socket overwrites it (see
 * `sharedReads`).
 */
export function readHttpResponse(
  dispatcher: Dispatcher,
  asked: Dispatcher.DispatchOptions,
  options: ReadOptions,
): PendingResponse {
  let reader: Reader | undefined;
  const answer = new Promise<RawResponse>((resolve, reject) => {
    reader = new Reader(options, resolve, reject);
    dispatcher.dispatch(asked, reader);
  });
  return { response: answer, abort: () => reader?.giveUp() };
}

/** Maximum size of the buffer that is allocated according to a `Content-Length` header, in bytes. The header may be wrong. */
const MAX_PREALLOCATED_BYTES = 4 * 2 ** 20;
const NO_BYTES = Buffer.alloc(0);

/**
 * Collects one response by the handler methods of undici 6, which undici 7 accepts as well. Newer methods would fail with the dispatcher
 * of Node's bundled undici, which is the global dispatcher if `fetch` was called before the undici package was loaded.
 */
class Reader implements Dispatcher.DispatchHandler {
  readonly #options: ReadOptions;
  readonly #resolve: (answer: RawResponse) => void;
  readonly #reject: (error: Error) => void;
  #close: ((error: Error) => void) | undefined;
  #aborted: Error | undefined;
  #hasEnded = false;
  #head: Omit<RawResponse, 'body'> | undefined;
  #memory: Buffer = NO_BYTES;
  #length = 0;

  constructor(
    options: ReadOptions,
    resolve: (answer: RawResponse) => void,
    reject: (error: Error) => void,
  ) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Aborts the request unless it has ended. An error is created only if it is needed: its stack trace takes time. */
  giveUp(): void {
    if (!this.#hasEnded) this.#abort(new errors.RequestAbortedError());
  }

  #abort(error: Error): void {
    this.#aborted = error;
    this.#close?.(error);
  }

  /** Called when the request is assigned to a connection, and again if undici repeats the request on another connection. */
  onConnect(close: (error?: Error) => void): void {
    this.#close = close;
    if (this.#aborted) close(this.#aborted);
  }

  onHeaders(status: number, rawHeaders: Buffer[]): boolean {
    if (status < 200) return true; // an interim response: the final one follows
    const headers = util.parseHeaders(rawHeaders);
    this.#head = { status, headers };
    const length = Number(headers['content-length'] ?? 0);
    if (length > 0)
      this.#makeRoom(Math.min(length, MAX_PREALLOCATED_BYTES, this.#options.maxBytes));
    return true;
  }

  onData(piece: Buffer): boolean {
    if (this.#aborted) return true;
    const { maxBytes, tooLargeError } = this.#options;
    const length = this.#length + piece.length;
    if (length > maxBytes) {
      this.#abort(tooLargeError());
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
    this.#hasEnded = true;
    const memory = this.#memory;
    this.#memory = NO_BYTES; // the body owns the buffer
    const body = new Body(memory.subarray(0, this.#length), () => this.#giveBack(memory));
    this.#resolve({ ...this.#head!, body });
  }

  onError(cause: Error): void {
    this.#hasEnded = true;
    this.#giveBack(this.#memory);
    this.#memory = NO_BYTES;
    this.#reject(this.#head ? this.#options.truncatedError(cause) : cause);
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

/** Size of the buffer that all sockets share, in bytes: the size that Node allocates for each read by default. */
const READ_BYTES = 65_536;

/**
 * Returns the `onread` option for sockets that all read into one buffer. It suits HTTP/1.1 connections without pipelining. Consumers of a
 * body must process or copy each chunk at once, and cannot pause the socket.
 *
 * With a new buffer for each socket read, the marking of objects by V8's garbage collection takes a sixth of the CPU time for unchanged
 * pages.
 */
export function sharedReads(): OnReadOpts {
  /**
   * The response that is being received on each socket. `asked` is the socket's `bytesWritten` when the response began, which identifies
   * the request. `isShared` says whether chunks of the response may be passed on without a copy.
   */
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
    // Node calls it with the socket as `this`, which is not documented.
    callback(this: Socket, length: number, memory: Buffer) {
      const read = memory.subarray(0, length);
      const goesOn = this.push(isShared(this, read) ? read : Buffer.from(read));
      // Runs after the tick in which the socket emits `readable`, and before any other socket reads into the buffer.
      process.nextTick(copyUnread, this);
      return goesOn;
    },
  };
}

/**
 * Whether the first chunk of a response contains all of its headers, with a final status (not 1xx). If not, all chunks of the response are
 * copied: undici refers to parts of incomplete headers in the buffer that all sockets share.
 */
function beginsWithHead(read: Buffer): boolean {
  const status = read.toString('latin1', 0, STATUS_CHARS);
  return FINAL_STATUS.test(status) && read.includes(END_OF_HEAD);
}

const FINAL_STATUS = /^HTTP\/1\.\d [2-5]\d\d/;
const STATUS_CHARS = 'HTTP/1.1 200'.length;
const END_OF_HEAD = '\r\n\r\n';

/** Replaces the unread data of a socket by a copy, because the next chunk from any socket overwrites the buffer that all sockets share. */
function copyUnread(socket: Socket): void {
  if (socket.readableLength === 0) return;
  socket.unshift(Buffer.from(socket.read() as Buffer));
}

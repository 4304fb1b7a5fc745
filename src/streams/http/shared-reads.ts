import type { OnReadOpts, Socket } from 'node:net';

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

import type { OnReadOpts, Socket } from 'node:net';

/** Of one read: what Node would make new for each. */
const READ_BYTES = 65_536;

/**
 * Has sockets read into one piece of memory. Whoever is told of what a socket has read looks at it at once, or copies it.
 *
 * With new memory for each read a page of 3 MB leaves as much behind. V8 counts that as if it were old, and marks all objects
 * every few pages: a third of the CPU of pages that have not changed, and more where the heap is limited.
 */
export function sharedReads(): OnReadOpts {
  return {
    buffer: Buffer.allocUnsafeSlow(READ_BYTES),
    callback(this: Socket, length: number, memory: Buffer) {
      const goesOn = this.push(memory.subarray(0, length));
      // Behind the tick in which the socket says that there is something to be read, and before any other socket reads.
      process.nextTick(keepUnread, this);
      return goesOn;
    },
  };
}

/** What nobody has looked at by now is to be there when somebody does. */
function keepUnread(socket: Socket): void {
  if (socket.readableLength === 0) return;
  socket.unshift(Buffer.from(socket.read() as Buffer));
}

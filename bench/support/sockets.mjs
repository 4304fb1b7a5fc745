// @ts-check
// The connections of a process, as the system counts them. Undefined where the system does not tell.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Of a connection that is made, in `/proc/net/tcp`. */
const ESTABLISHED = '01';

/**
 * How many connections a process has to this port, of whichever host.
 *
 * @param {number} pid
 * @param {number} port
 * @returns {number | undefined}
 */
export function connectionsTo(pid, port) {
  try {
    const own = socketsOf(pid);
    return ['tcp', 'tcp6']
      .flatMap((file) => readFileSync(`/proc/${pid}/net/${file}`, 'utf8').split('\n').slice(1))
      .filter((line) => {
        const [, , remote = '', state, , , , , , inode] = line.trim().split(/\s+/);
        const to = Number.parseInt(remote.slice(remote.lastIndexOf(':') + 1), 16);
        return state === ESTABLISHED && to === port && own.has(String(inode));
      }).length;
  } catch {
    return undefined; // another system, or the process has ended
  }
}

/** The inodes of its sockets. @param {number} pid */
function socketsOf(pid) {
  const folder = `/proc/${pid}/fd`;
  const inodes = readdirSync(folder).flatMap((fd) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`${folder}/${fd}`))?.[1] ?? [];
    } catch {
      return []; // it was closed meanwhile
    }
  });
  return new Set(inodes);
}

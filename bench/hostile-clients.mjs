// @ts-check
// Two hundred slow and hostile clients of the status port, as a program of its own: what they cost must
// not be counted as the service's. Told the URL as its argument; goes on until it is ended.
import { Agent, request } from 'node:http';
import { connect } from 'node:net';

const url = new URL(/** @type {string} */ (process.argv[2]));
const agent = new Agent({ keepAlive: true, maxSockets: 300 });

/** A connection that is made again when it ends, after a moment. @param {(socket: import('node:net').Socket) => void} use */
function dial(use) {
  const socket = connect(Number(url.port), url.hostname);
  socket.on('error', () => undefined);
  socket.once('connect', () => use(socket));
  socket.once('close', () => setTimeout(() => dial(use), 20));
}

/** A letter of a header every half second: it never ends. */
const slowHeaders = () =>
  dial((socket) => {
    socket.write(`GET /status HTTP/1.1\r\nhost: ${url.host}\r\nx-slow: `);
    const timer = setInterval(() => socket.write('x'), 500);
    socket.once('close', () => clearInterval(timer));
  });

/** Asks for everything, all the time, and never reads an answer. */
const neverReads = () =>
  dial((socket) => {
    socket.pause();
    socket.write(`GET /status/events HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`);
  });

/** As fast as it is answered. @param {string} path @param {string} [method] */
const floods = (path, method = 'GET') => {
  const sent = request(new URL(path, url), { agent, method }, (answer) => {
    answer.resume();
    answer.once('close', () => setImmediate(floods, path, method));
  });
  sent.once('error', () => setTimeout(floods, 20, path, method));
  sent.end();
};

/** A hundred requests in one breath. */
const pipelines = () =>
  dial((socket) => {
    socket.resume();
    socket.write(`GET /status HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`.repeat(100));
  });

/** No HTTP at all, and headers that are too large. */
const talksNonsense = () =>
  dial((socket) => {
    socket.resume();
    socket.write(`\x16\x03\x01${'x'.repeat(20_000)}\r\n\r\n`);
  });

/** Comes and goes. */
const knocks = () => dial((socket) => socket.destroy());

/** @type {[number, () => void][]} */
const CLIENTS = [
  [60, slowHeaders],
  [40, neverReads],
  [20, () => floods('/metrics')],
  [20, () => floods('/status')],
  [10, () => floods('/status', 'POST')],
  [10, () => floods('/../../etc/passwd')],
  [10, pipelines],
  [15, talksNonsense],
  [15, knocks],
];
for (const [count, start] of CLIENTS) for (let n = 0; n < count; n++) start();

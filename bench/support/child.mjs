// @ts-check
// A program of the bench in a process of its own, and questions to it.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {object} Child
 * @property {number} pid
 * @property {unknown} first What it said when it was ready.
 * @property {(name: string, ...args: unknown[]) => Promise<unknown>} call
 * @property {() => Promise<void>} end
 */

/** @typedef {{ readonly id: number, readonly result?: unknown, readonly failure?: string }} Answer */

/**
 * Starts a program of this folder, which says `{ id: 0, result }` when it is ready and then
 * `{ id, result }` or `{ id, failure }` to each `{ id, name, args }`.
 *
 * @param {import('./scope.mjs').Scope} scope Ends it.
 * @param {string} file Beside this one.
 * @param {readonly string[]} args
 * @returns {Promise<Child>}
 */
export async function startChild(scope, file, args) {
  const program = fileURLToPath(new URL(file, import.meta.url));
  const child = fork(program, args, { execArgv: [], serialization: 'advanced' });
  /** @type {Map<number, (answer: Answer) => void>} */
  const waiting = new Map();
  let last = 0;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  void ended.then(() => {
    for (const settle of waiting.values()) settle({ id: 0, failure: `${file} has ended` });
  });
  child.on('message', (/** @type {Answer} */ answer) => {
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  const end = scope.add(async () => {
    if (child.connected) child.disconnect();
    await ended;
  });
  /** @param {number} id @returns {Promise<unknown>} */
  const answered = (id) =>
    new Promise((resolve, reject) =>
      waiting.set(id, ({ result, failure }) =>
        failure === undefined ? resolve(result) : reject(new Error(failure)),
      ),
    );
  const first = await answered(0);
  return {
    pid: /** @type {number} */ (child.pid),
    first,
    call: (name, ...callArgs) => {
      last += 1;
      const answer = answered(last);
      child.send({ id: last, name, args: callArgs });
      return answer;
    },
    end,
  };
}

/**
 * Helper process that runs a launcher's programs in a temporary folder. It ends the programs and deletes the folder when the launcher ends,
 * even by SIGKILL: the IPC channel then closes.
 *
 * It runs detached, and each program in its own process group, so that Ctrl-C reaches only the launcher.
 *
 * Started by `Tethered` as `node tether.js FOLDER-PREFIX`; imports nothing from the project.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** Message from the launcher to the helper process: run this command in the temporary folder, with its output in `<name>.log` there. */
export interface TetherCommand {
  readonly id: number;
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * Message from the helper process to the launcher:
 *
 * - `folder`: the first message. It has the path of the temporary folder.
 * - `started`: the program of the command `id` runs.
 * - `exited`: that program has ended.
 * - `failed`: the command `id` could not be executed. Id 0: the helper process itself can't start.
 */
export type TetherEvent =
  | { readonly type: 'folder'; readonly path: string }
  | { readonly type: 'started'; readonly id: number; readonly pid: number }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
  | { readonly type: 'exited'; readonly id: number; readonly how: string };

/** Time in ms from SIGTERM until a program is killed. If it is too short, brokers are killed before they have shut down. */
const GRACE_MS = 5_000;

/**
 * The helper process, which starts programs on command. It ends when the launcher ends or disconnects, on a signal, and after an uncaught
 * error. Before it exits, it stops the programs and deletes the folder.
 */
class Helper {
  readonly #folder: string;
  readonly #running = new Set<ChildProcess>();
  #isEnding = false;

  constructor(folder: string) {
    this.#folder = folder;
  }

  serve(): void {
    const end = () => this.#end();
    process.on('message', (command: TetherCommand) => this.#run(command));
    process.on('disconnect', end);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, end);
    process.on('uncaughtException', (error) => {
      console.error(error);
      end();
    });
    send({ type: 'folder', path: this.#folder });
    // The launcher may have ended before the listener for `disconnect` was added.
    if (!process.connected) end();
  }

  #run({ id, name, command, args }: TetherCommand): void {
    if (this.#isEnding) return;
    const log = openSync(join(this.#folder, `${name}.log`), 'w');
    const child = spawn(command, args, {
      cwd: this.#folder,
      detached: true,
      stdio: ['ignore', log, log],
    });
    closeSync(log);
    child.on('error', (error) => send({ type: 'failed', id, message: error.message }));
    if (child.pid === undefined) return; // `error` follows
    this.#running.add(child);
    send({ type: 'started', id, pid: child.pid });
    child.on('exit', (code, signal) => {
      this.#running.delete(child);
      send({ type: 'exited', id, how: signal ?? `exit code ${code ?? 'unknown'}` });
      this.#exitIfDone();
    });
  }

  #end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    for (const child of this.#running) stop(child);
    this.#exitIfDone();
  }

  #exitIfDone(): void {
    if (!this.#isEnding || this.#running.size > 0) return;
    // Retries, because a process of an ended group may still be writing.
    const options = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 };
    void rm(this.#folder, options).then(() => process.exit());
  }
}

try {
  const [, , prefix] = process.argv;
  mkdirSync(dirname(prefix!), { recursive: true });
  new Helper(mkdtempSync(prefix!)).serve();
} catch (error) {
  process.send!({ type: 'failed', id: 0, message: (error as Error).message }, () =>
    process.exit(1),
  );
}

function stop(child: ChildProcess): void {
  // A paused program handles SIGTERM only after SIGCONT.
  signalGroup(child, 'SIGTERM');
  signalGroup(child, 'SIGCONT');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS);
  child.on('exit', () => clearTimeout(timer));
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal);
  } catch (error) {
    // The program has ended already, and its `exit` event follows.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function send(event: TetherEvent): void {
  // If the launcher has ended, the event is dropped; `disconnect` triggers the cleanup.
  if (process.connected) process.send!(event, () => undefined);
}

/**
 * A process of its own that keeps a launcher's programs and their folder, and ends and removes
 * them when the launcher does. A launcher that is killed with SIGKILL can't clean up; but the
 * channel to it closes, and that is all that is waited for here.
 *
 * It runs detached, and each program in a process group of its own, so that Ctrl-C reaches the
 * launcher alone: it is still talking to the programs when it winds up.
 *
 * Started by `Tethered` as `node tether.js FOLDER-PREFIX`; imports nothing of the project.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** From the launcher: run this, in the folder, with its output in the file `<name>.log` there. */
export interface TetherCommand {
  readonly id: number;
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

/** To the launcher. `folder`, or a `failed` with id 0, comes first; each command has a `started` or a `failed`. */
export type TetherEvent =
  | { readonly type: 'folder'; readonly path: string }
  | { readonly type: 'started'; readonly id: number; readonly pid: number }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
  | { readonly type: 'exited'; readonly id: number; readonly how: string };

/** How long a program may take to end by itself after SIGTERM, in ms. */
const GRACE_MS = 5_000;

const running = new Set<ChildProcess>();
let folder = '';
let ending = false;

try {
  folder = makeFolder(process.argv[2]!);
  serve();
} catch (error) {
  process.send!({ type: 'failed', id: 0, message: (error as Error).message }, () =>
    process.exit(1),
  );
}

function makeFolder(prefix: string): string {
  mkdirSync(dirname(prefix), { recursive: true });
  return mkdtempSync(prefix);
}

function serve(): void {
  process.on('message', (command: TetherCommand) => run(command));
  process.on('disconnect', end);
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, end);
  process.on('uncaughtException', (error) => {
    console.error(error);
    end();
  });
  tell({ type: 'folder', path: folder });
  // The launcher may have been gone before anybody listened.
  if (!process.connected) end();
}

function run({ id, name, command, args }: TetherCommand): void {
  if (ending) return;
  const log = openSync(join(folder, `${name}.log`), 'w');
  const child = spawn(command, args, {
    cwd: folder,
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  child.on('error', (error) => tell({ type: 'failed', id, message: error.message }));
  child.on('spawn', () => {
    running.add(child);
    tell({ type: 'started', id, pid: child.pid! });
    if (ending) stop(child);
  });
  child.on('exit', (code, signal) => {
    running.delete(child);
    tell({ type: 'exited', id, how: signal ?? `exit code ${code ?? 'unknown'}` });
    if (ending && running.size === 0) void leave();
  });
}

/** Ends all programs; the last one's exit leads on to `leave`. */
function end(): void {
  if (ending) return;
  ending = true;
  for (const child of running) stop(child);
  if (running.size === 0) void leave();
}

function stop(child: ChildProcess): void {
  // A program that is paused would not see SIGTERM before it goes on.
  signalGroup(child, 'SIGTERM');
  signalGroup(child, 'SIGCONT');
  const timer = setTimeout(() => signalGroup(child, 'SIGKILL'), GRACE_MS);
  child.on('exit', () => clearTimeout(timer));
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    process.kill(-child.pid!, signal);
  } catch (error) {
    // It ended by itself, and its exit is on the way.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

async function leave(): Promise<void> {
  // Retries: a program of the ended group may still be writing its last.
  await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  process.exit();
}

function tell(event: TetherEvent): void {
  // When the launcher is gone nobody needs to know, and `disconnect` has the rest done.
  if (process.connected) process.send!(event, () => undefined);
}

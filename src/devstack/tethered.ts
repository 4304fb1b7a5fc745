// Runs programs that end with this process, in a temporary folder, and waits until a server answers.

import { fork, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { CellarstreamError } from '../core/errors.ts';
import type { TetherCommand, TetherEvent } from './tether.ts';

/**
 * Path of the compiled helper process (`tether.ts`). It is the compiled file even if this module runs from `src`: Node 20 can't run
 * TypeScript.
 */
const TETHER = fileURLToPath(new URL('../../dist/devstack/tether.js', import.meta.url));

const LAST_LINES = 12;
const HELPER_ENDED = 'the helper process that runs the servers has ended';

/** A program that runs in a temporary folder and ends with this process. */
export class Program {
  readonly pid: number;
  /** Resolves once the program has ended, with a text that says how: see {@link ended}. */
  readonly whenEnded: Promise<string>;
  readonly #logFile: string;
  #ended: string | undefined;

  constructor(pid: number, whenEnded: Promise<string>, logFile: string) {
    this.pid = pid;
    this.#logFile = logFile;
    this.whenEnded = whenEnded.then((how) => (this.#ended = how));
  }

  /** How the program ended, such as `SIGKILL` or `exit code 1`; undefined while it runs. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** Returns the program's output so far, stdout and stderr together. */
  log(): Promise<string> {
    return readFile(this.#logFile, 'utf8');
  }
}

export function lastLines(log: string): string {
  return log.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
}

/**
 * A new temporary folder, and programs that run in it. A helper process (`tether.ts`) ends the programs and deletes the folder at `end()`,
 * or when this process ends, even by SIGKILL.
 */
export class Tethered {
  readonly folder: string;
  readonly #tether: ChildProcess;
  readonly #ended: Promise<unknown>;
  /** Receivers of the events of each program that has not ended, by the id of its command. */
  readonly #pending = new Map<
    number,
    (event: Exclude<TetherEvent, { readonly type: 'folder' }>) => void
  >();
  #lastId = 0;

  /**
   * Creates the temporary folder and starts the helper process.
   *
   * @param prefix Path of the folder, to which six random characters are appended.
   * @throws CellarstreamError `SERVICES` if the helper process does not start.
   */
  static async start(prefix: string, env: NodeJS.ProcessEnv): Promise<Tethered> {
    const tether = fork(TETHER, [prefix], {
      detached: true,
      env,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    const folder = await new Promise<string>((resolve, reject) => {
      const refuse = (cause?: unknown) =>
        reject(
          new CellarstreamError(
            'SERVICES',
            `the process that runs Kafka and the schema registry could not be started from ${TETHER} (see its output above): if that file is missing, run npm run build`,
            { cause },
          ),
        );
      tether.once('error', refuse);
      tether.once('exit', () => refuse());
      tether.once('message', (event: TetherEvent) => {
        if (event.type === 'folder') resolve(event.path);
        else if (event.type === 'failed') refuse(event.message);
      });
    });
    return new Tethered(tether, folder);
  }

  private constructor(tether: ChildProcess, folder: string) {
    this.folder = folder;
    this.#tether = tether;
    tether.on('message', (event: TetherEvent) => {
      if (event.type !== 'folder') this.#pending.get(event.id)?.(event);
    });
    this.#ended = new Promise((resolve) => tether.once('exit', resolve)).then(() => {
      // Nothing else would settle the calls of `run`, and the promises `whenEnded` of programs.
      for (const [id, settle] of this.#pending) {
        settle({ type: 'failed', id, message: HELPER_ENDED });
      }
    });
  }

  /**
   * Starts `command` with `args` in {@link Tethered.folder}, and resolves once the program runs. Its output goes to the file `<name>.log`
   * there.
   *
   * @throws CellarstreamError `SERVICES` if the program cannot be started.
   */
  run(name: string, command: string, args: readonly string[]): Promise<Program> {
    const id = ++this.#lastId;
    const logFile = join(this.folder, `${name}.log`);
    const refusal = (what: string, cause?: Error) =>
      new CellarstreamError('SERVICES', what, cause && { cause });
    return new Promise((resolve, reject) => {
      const whenEnded = new Promise<string>((end) => {
        this.#pending.set(id, (event) => {
          if (event.type === 'started') return resolve(new Program(event.pid, whenEnded, logFile));
          this.#pending.delete(id);
          if (event.type === 'exited') return end(event.how);
          end(event.message);
          reject(refusal(`could not run ${command}: ${event.message}`));
        });
      });
      const order: TetherCommand = { id, name, command, args };
      this.#tether.send(order, (error) => {
        if (error) reject(refusal(HELPER_ENDED, error));
      });
    });
  }

  /** Ends the programs and deletes the folder; resolves when both are done. */
  async end(): Promise<void> {
    if (this.#tether.connected) this.#tether.disconnect();
    await this.#ended;
  }
}

/** Pause between two checks whether a started server is ready, in ms. */
const TRY_EVERY_MS = 50;

/** Checks whether a server is ready; returns false or throws if it is not. */
export type Probe = () => Promise<boolean>;

/**
 * Repeats a probe until the server is ready.
 *
 * @param name The server's name in error messages.
 * @throws CellarstreamError `SERVICES`, with the end of the log, if the program ends first or takes longer than `timeoutMs`.
 */
export async function untilReady(
  name: string,
  program: Pick<Program, 'ended' | 'log'>,
  probe: Probe,
  timeoutMs: number,
): Promise<void> {
  const late = AbortSignal.timeout(timeoutMs);
  let lastError: unknown;
  for (;;) {
    try {
      if (await probe()) return;
    } catch (error) {
      lastError = error;
    }
    if (program.ended !== undefined) throw await failure(`ended (${program.ended})`);
    if (late.aborted) throw await failure(`did not answer within ${timeoutMs / 1000} s`);
    await pause(TRY_EVERY_MS);
  }

  async function failure(what: string): Promise<CellarstreamError> {
    const log = lastLines(await program.log());
    return new CellarstreamError('SERVICES', `${name} ${what}; the end of its log:\n${log}`, {
      cause: lastError,
    });
  }
}

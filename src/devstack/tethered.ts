// Programs in a temporary folder that end with this process (`tether.ts`), and waiting until one of them answers.

import { fork, type ChildProcess } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as pause } from 'node:timers/promises';
import { CellarstreamError } from '../core/errors.ts';
import type { TetherCommand, TetherEvent } from './tether.ts';

/** The compiled file, from src and dist alike: Node 20 runs no TypeScript. */
const TETHER = fileURLToPath(new URL('../../dist/devstack/tether.js', import.meta.url));

/** How much of a program's log an error quotes. */
const LAST_LINES = 12;

/** A program that runs in a `Tethered` folder. */
export interface Program {
  readonly pid: number;
  /** Undefined while it runs; then how it ended: `SIGKILL`, `exit code 1`. */
  readonly ended: string | undefined;
  /** Resolves when it has ended, with how. */
  readonly whenEnded: Promise<string>;
  /** What it has written since it was started, to either stream. */
  log(): Promise<string>;
}

/** The last lines of a log, for an error. */
export function lastLines(log: string): string {
  return log.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
}

/**
 * A new temporary folder, and programs that run in it. Both end with `end()`, or when this process
 * does, SIGKILL included: they belong to a small process of their own (`tether.ts`).
 */
export class Tethered {
  readonly folder: string;
  readonly #tether: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly #pending = new Map<number, (event: TetherEvent) => void>();
  #lastId = 0;

  /**
   * @param prefix Path of the folder, to which six random characters are added.
   * @throws CellarstreamError `SERVICES` when the tether does not come up.
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
        reject(new CellarstreamError('SERVICES', `could not start ${TETHER}`, { cause }));
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
    this.#ended = new Promise((resolve) => tether.once('exit', resolve));
    tether.on('message', (event: TetherEvent) => {
      if (event.type !== 'folder') this.#pending.get(event.id)?.(event);
    });
  }

  /**
   * Runs a program in the folder; its output goes to `<name>.log` there, from the start of the file.
   *
   * @throws CellarstreamError `SERVICES` when it can't be run at all.
   */
  run(name: string, command: string, args: readonly string[]): Promise<Program> {
    const id = ++this.#lastId;
    const logFile = join(this.folder, `${name}.log`);
    return new Promise((resolve, reject) => {
      let ended: string | undefined;
      let settleEnded: (how: string) => void;
      const whenEnded = new Promise<string>((settle) => (settleEnded = settle));
      this.#pending.set(id, (event) => {
        if (event.type === 'started') {
          resolve({
            pid: event.pid,
            get ended() {
              return ended;
            },
            whenEnded,
            log: () => readFile(logFile, 'utf8'),
          });
        } else if (event.type === 'exited') {
          this.#pending.delete(id);
          settleEnded((ended = event.how));
        } else if (event.type === 'failed') {
          this.#pending.delete(id);
          reject(new CellarstreamError('SERVICES', `could not run ${command}: ${event.message}`));
        }
      });
      const order: TetherCommand = { id, name, command, args };
      this.#tether.send(order, (error) => {
        if (error)
          reject(new CellarstreamError('SERVICES', 'the launch has ended', { cause: error }));
      });
    });
  }

  /** Ends the programs and removes the folder; resolves when both are done. */
  async end(): Promise<void> {
    if (this.#tether.connected) this.#tether.disconnect();
    await this.#ended;
  }
}

/** Between two tries, in ms. */
const TRY_EVERY_MS = 50;

/** Asks once; throws, or gives false, as long as there is no answer. */
export type Probe = () => Promise<boolean>;

/**
 * Asks again and again until a server answers.
 *
 * @param name What the server is called in errors.
 * @throws CellarstreamError `SERVICES`, with the end of its log, when the program ends before it
 * answers or takes longer than `timeoutMs`.
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
    return new CellarstreamError('SERVICES', `${name} ${what}; its last words:\n${log}`, {
      cause: lastError,
    });
  }
}

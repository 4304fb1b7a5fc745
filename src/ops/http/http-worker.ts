import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { CellarstreamError, describeError } from '../../core/errors.ts';
import { loadPage, openHttpServer } from './http-server.ts';
import type { FromThread, Questions, ThreadData, ToThread } from './http-thread.ts';

// The thread of the HTTP server: asks the service, by messages, for what clients ask it for.

/** A service that has not answered by then is stuck, ms. */
const STUCK_MS = 5_000;

/** Of 19, the least: where processors are short, the pipeline comes first. */
const PRIORITY = 10;

const port = parentPort!;
const tell = (message: FromThread) => port.postMessage(message);
const waiting = new Map<
  number,
  { resolve: (answer: never) => void; reject: (error: Error) => void }
>();
let asked = 0;

const ask = <K extends keyof Questions>(
  what: K,
  about = '',
): Promise<Awaited<ReturnType<Questions[K]>>> => {
  const id = (asked += 1);
  const late = setTimeout(() => {
    waiting.get(id)?.reject(new Error('the service is stuck: it does not answer'));
    waiting.delete(id);
  }, STUCK_MS);
  tell({ kind: 'question', id, what, about });
  return new Promise<Awaited<ReturnType<Questions[K]>>>((resolve, reject) => {
    waiting.set(id, { resolve, reject });
  }).finally(() => clearTimeout(late));
};

yieldToPipeline();
try {
  const { hasAccounts, ...address } = workerData as ThreadData;
  const server = await openHttpServer({
    ...address,
    page: loadPage(hasAccounts ? 'fleet' : 'page'),
    answers: {
      alive: () => ask('alive'),
      readiness: () => ask('readiness'),
      status: () => ask('status'),
      metrics: () => ask('metrics'),
    },
    ...(hasAccounts && {
      accounts: {
        page: loadPage('account'),
        status: (account) => ask('accountStatus', account),
      },
    }),
    onError: (error) => tell({ kind: 'trouble', text: describeError(error) }),
  });
  port.on('message', (message: ToThread) => {
    const question = waiting.get(message.id);
    waiting.delete(message.id);
    if ('failure' in message) question?.reject(new Error(message.failure));
    else question?.resolve(message.answer as never);
  });
  tell({ kind: 'listening', url: server.url });
} catch (error) {
  if (!(error instanceof CellarstreamError)) throw error;
  const { message, context } = error;
  tell({ kind: 'refused', message, settings: String(context.settings) });
  port.close();
}

/** Linux has priorities of threads; elsewhere they are left as they are. */
function yieldToPipeline(): void {
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, PRIORITY);
  } catch {
    // not there, or not allowed: nothing is lost by it
  }
}

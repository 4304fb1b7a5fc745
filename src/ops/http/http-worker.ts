import { parentPort, workerData } from 'node:worker_threads';
import { CellarstreamError, describeError } from '../../core/errors.ts';
import { loadPage, openHttpServer } from './http-server.ts';
import type { WorkerMessage, ServiceCalls, ThreadData, ServiceMessage } from './http-thread.ts';

// The worker thread of the HTTP server. It gets status, metrics and readiness from the service in the main thread, by messages.

/** Time-out of a call from this thread to the service in the main thread, in ms. After it the main thread counts as stuck. */
const STUCK_MS = 5_000;

const port = parentPort!;
const send = (message: WorkerMessage) => port.postMessage(message);
const pendingCalls = new Map<
  number,
  { resolve: (answer: never) => void; reject: (error: Error) => void }
>();
let lastCallId = 0;

const call = <K extends keyof ServiceCalls>(
  what: K,
  about = '',
): Promise<Awaited<ReturnType<ServiceCalls[K]>>> => {
  const id = (lastCallId += 1);
  const late = setTimeout(() => {
    pendingCalls.get(id)?.reject(new Error('the service is stuck: it does not respond'));
    pendingCalls.delete(id);
  }, STUCK_MS);
  send({ kind: 'question', id, what, argument: about });
  return new Promise<Awaited<ReturnType<ServiceCalls[K]>>>((resolve, reject) => {
    pendingCalls.set(id, { resolve, reject });
  }).finally(() => clearTimeout(late));
};

try {
  const { hasAccounts, ...address } = workerData as ThreadData;
  const server = await openHttpServer({
    ...address,
    page: loadPage(hasAccounts ? 'fleet' : 'page'),
    endpoints: {
      alive: () => call('alive'),
      readiness: () => call('readiness'),
      status: () => call('status'),
      metrics: () => call('metrics'),
    },
    ...(hasAccounts && {
      accounts: {
        page: loadPage('account'),
        status: (account) => call('accountStatus', account),
      },
    }),
    onError: (error) => send({ kind: 'trouble', text: describeError(error) }),
  });
  port.on('message', (message: ServiceMessage) => {
    const question = pendingCalls.get(message.id);
    pendingCalls.delete(message.id);
    if ('error' in message) question?.reject(new Error(message.error));
    else question?.resolve(message.result as never);
  });
  send({ kind: 'listening', url: server.url });
} catch (error) {
  if (!(error instanceof CellarstreamError)) throw error;
  const { message, context } = error;
  send({ kind: 'refused', message, settings: String(context.settings) });
  port.close();
}

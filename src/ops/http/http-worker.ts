import { once } from 'node:events';
import { MessageChannel, parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { CellarstreamError, describeError } from '../../core/errors.ts';
import { loadPage, openHttpServer } from './http-server.ts';
import type { WorkerMessage, ServiceCalls, ThreadData, ServiceMessage } from './http-thread.ts';

// The worker thread of the HTTP server. It gets status, metrics and readiness from the service in the main thread, by messages.

/** Time-out of a call from this thread to the service in the main thread, in ms. After it the main thread counts as stuck. */
const STUCK_MS = 5_000;

const port = parentPort!;
const send = (message: WorkerMessage, transferred: readonly MessagePort[] = []) =>
  port.postMessage(message, transferred);

async function call<K extends keyof ServiceCalls>(
  what: K,
  argument = '',
): Promise<Awaited<ReturnType<ServiceCalls[K]>>> {
  const { port1: answers, port2: answerTo } = new MessageChannel();
  send({ kind: 'question', what, argument, answerTo }, [answerTo]);
  try {
    const late = AbortSignal.timeout(STUCK_MS);
    const [answer] = (await once(answers, 'message', { signal: late })) as [ServiceMessage];
    if ('error' in answer) throw new Error(answer.error);
    return answer.result as Awaited<ReturnType<ServiceCalls[K]>>;
  } catch (error) {
    if ((error as Error).name !== 'AbortError') throw error;
    throw new Error(
      `the main thread of the service did not respond within ${STUCK_MS / 1_000} s: it is stuck or overloaded, and /healthz answers 503 meanwhile. If this does not pass, restart the process`,
      { cause: error },
    );
  } finally {
    answers.close();
  }
}

try {
  const { hasAccounts, ...address } = workerData as ThreadData;
  const { url } = await openHttpServer({
    ...address,
    page: loadPage(hasAccounts ? 'fleet' : 'page'),
    ...(hasAccounts && { accountPage: loadPage('account') }),
    endpoints: {
      alive: () => call('alive'),
      readiness: () => call('readiness'),
      status: () => call('status'),
      metrics: () => call('metrics'),
      ...(hasAccounts && { accountStatus: (account) => call('accountStatus', account) }),
    },
    onError: (error) => send({ kind: 'trouble', text: describeError(error) }),
  });
  send({ kind: 'listening', url });
} catch (error) {
  if (!(error instanceof CellarstreamError)) throw error;
  const { message, context } = error;
  send({ kind: 'refused', message, settings: String(context.settings) });
  port.close();
}

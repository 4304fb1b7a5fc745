import { Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { CellarstreamError } from '../../core/errors.ts';
import type { HttpServer, HttpServerOptions, StatusEndpoints } from './http-server.ts';

/** Data that the worker thread receives when it starts (`workerData`). */
export interface ThreadData extends Pick<HttpServerOptions, 'host' | 'port'> {
  /** Whether the server belongs to an instance of a fleet and therefore also serves the status of single accounts. */
  readonly hasAccounts: boolean;
}

/** Calls that the worker thread makes to the service in the main thread, by messages. */
export type ServiceCalls = Required<StatusEndpoints>;

export type WorkerMessage =
  | { readonly kind: 'listening'; readonly url: string }
  /** The HTTP server can't listen on its address; `settings` names the setting to change. */
  | { readonly kind: 'refused'; readonly message: string; readonly settings: string }
  | ServiceCall
  | { readonly kind: 'trouble'; readonly text: string };

interface ServiceCall {
  readonly kind: 'question';
  readonly what: keyof ServiceCalls;
  /** Argument of the called function: the name of the account if `what` is `accountStatus`, otherwise the empty text. */
  readonly argument: string;
  /** Port to which the response to the call is sent, as one {@link ServiceMessage}. */
  readonly answerTo: MessagePort;
}

export type ServiceMessage = { readonly result: unknown } | { readonly error: string };

const THREAD = new URL('./http-worker.js', import.meta.url);

/**
 * Runs the HTTP server in a worker thread, so that `/healthz` can report that the pipeline's thread is stuck. Readiness, status and metrics
 * are computed in the pipeline's thread.
 *
 * @throws CellarstreamError `SETTINGS` when the server can't listen on that address.
 */
export async function openHttpThread(
  options: Omit<HttpServerOptions, 'page' | 'accountPage'>,
): Promise<HttpServer> {
  const { endpoints, onError, ...address } = options;
  const workerData: ThreadData = { ...address, hasAccounts: 'accountStatus' in endpoints };
  const worker = new Worker(THREAD, { workerData });
  const answer = async ({ what, argument, answerTo }: ServiceCall): Promise<void> => {
    const reply = (message: ServiceMessage) => answerTo.postMessage(message);
    try {
      reply({ result: await endpoints[what]?.(argument) });
    } catch (error) {
      onError(error);
      reply({ error: `the service failed to return ${what}: its own error is logged` });
    }
  };
  const url = await new Promise<string>((resolve, reject) => {
    worker.on('error', (error) => {
      onError(error);
      reject(error);
    });
    worker.on('message', (message: WorkerMessage) => {
      if (message.kind === 'question') void answer(message);
      else if (message.kind === 'trouble') onError(new Error(message.text));
      else if (message.kind === 'listening') resolve(message.url);
      else {
        const { message: text, settings } = message;
        reject(new CellarstreamError('SETTINGS', text, { context: { settings } }));
      }
    });
  });
  return {
    url,
    // Open connections may be cut: responses are read-only, and clients reconnect.
    close: async () => void (await worker.terminate()),
  };
}

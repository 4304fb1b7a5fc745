import { Worker } from 'node:worker_threads';
import { CellarstreamError } from '../../core/errors.ts';
import type { Answers, HttpServer, HttpServerOptions } from './http-server.ts';

/** What the thread is started with. */
export type ThreadData = Pick<HttpServerOptions, 'host' | 'port' | 'metricsType'>;

/** From the thread to the service. */
export type FromThread =
  | { readonly kind: 'listening'; readonly url: string }
  /** It can't listen; `settings` names the one to change. */
  | { readonly kind: 'refused'; readonly message: string; readonly settings: string }
  | { readonly kind: 'question'; readonly id: number; readonly what: keyof Answers }
  | { readonly kind: 'trouble'; readonly text: string };

/** From the service to the thread. */
export type ToThread =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: string };

/** Beside the compiled code of this file. */
const THREAD = new URL('./http-worker.js', import.meta.url);

/**
 * The HTTP server in a thread of its own: whatever its clients do costs the pipeline next to nothing but
 * the answers, once a second at most. And it can tell when the pipeline's own thread is stuck.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openHttpThread(
  options: ThreadData & Pick<HttpServerOptions, 'answers' | 'onError'>,
): Promise<HttpServer> {
  const { answers, onError, ...workerData } = options;
  const worker = new Worker(THREAD, { workerData: workerData satisfies ThreadData });
  const tell = (message: ToThread) => worker.postMessage(message);
  const answer = async (id: number, what: keyof Answers): Promise<void> => {
    try {
      tell({ id, answer: await answers[what]() });
    } catch (error) {
      onError(error);
      tell({ id, failure: 'it went wrong' });
    }
  };
  const url = await new Promise<string>((resolve, reject) => {
    worker.on('error', (error) => {
      onError(error);
      reject(error);
    });
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'question') void answer(message.id, message.what);
      else if (message.kind === 'trouble') onError(new Error(message.text));
      else if (message.kind === 'listening') resolve(message.url);
      else
        reject(
          new CellarstreamError('SETTINGS', message.message, {
            context: { settings: message.settings },
          }),
        );
    });
  });
  return {
    url,
    // Nothing is lost with the connections that end so: each of them is told again.
    close: async () => void (await worker.terminate()),
  };
}

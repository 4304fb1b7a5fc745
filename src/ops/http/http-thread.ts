import { Worker } from 'node:worker_threads';
import { CellarstreamError } from '../../core/errors.ts';
import type { AccountAnswers, Answers, HttpServer, HttpServerOptions } from './http-server.ts';

/** What the thread is started with. */
export interface ThreadData extends Pick<HttpServerOptions, 'host' | 'port' | 'metricsType'> {
  /** Whether it serves an instance of a fleet, of which single accounts can be asked for. */
  readonly hasAccounts: boolean;
}

/** All that the thread may ask the service for. */
export interface Questions extends Answers {
  /** Asked only where there is a fleet. */
  readonly accountStatus: AccountAnswers['status'];
}

export type FromThread =
  | { readonly kind: 'listening'; readonly url: string }
  /** It can't listen; `settings` names the one to change. */
  | { readonly kind: 'refused'; readonly message: string; readonly settings: string }
  | Question
  | { readonly kind: 'trouble'; readonly text: string };

interface Question {
  readonly kind: 'question';
  readonly id: number;
  readonly what: keyof Questions;
  /** What it is asked about: an account. Else empty. */
  readonly about: string;
}

export type ToThread =
  | { readonly id: number; readonly answer: unknown }
  | { readonly id: number; readonly failure: string };

/** Beside the compiled code of this file. */
const THREAD = new URL('./http-worker.js', import.meta.url);

interface HttpThreadOptions extends Pick<
  HttpServerOptions,
  'host' | 'port' | 'metricsType' | 'answers' | 'onError'
> {
  /** Of an instance of a fleet. */
  readonly accountStatus?: AccountAnswers['status'];
}

/**
 * The HTTP server in a thread of its own: whatever its clients do costs the pipeline next to nothing but
 * the answers, once a second at most. And it can tell when the pipeline's own thread is stuck.
 *
 * @throws CellarstreamError `SETTINGS` when it can't listen there.
 */
export async function openHttpThread(options: HttpThreadOptions): Promise<HttpServer> {
  const { answers, accountStatus, onError, ...address } = options;
  const workerData: ThreadData = { ...address, hasAccounts: accountStatus !== undefined };
  const worker = new Worker(THREAD, { workerData });
  const tell = (message: ToThread) => worker.postMessage(message);
  const answer = async ({ id, what, about }: Question): Promise<void> => {
    try {
      tell({
        id,
        answer: await (what === 'accountStatus' ? accountStatus?.(about) : answers[what]()),
      });
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
      if (message.kind === 'question') void answer(message);
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

import { firstValueFrom } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import { startSandbox } from '../sandbox/index.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { SandboxFlags } from './sandbox-flags.ts';
import { stopSignals } from './stop.ts';

/** `cellarstream sandbox`: the API alone, until a signal. */
export async function sandboxCommand(flags: SandboxFlags): Promise<void> {
  const { host, port, apiKey } = flags;
  const sandbox = await startSandbox({ ...sandboxOptions(flags), host, port, apiKey }).catch(
    (cause: NodeJS.ErrnoException) => {
      if (cause.syscall !== 'listen') throw cause;
      const advice = `can't listen on ${host}:${port} (${cause.code}): choose others with --host and --port`;
      throw new CellarstreamError('SETTINGS', advice);
    },
  );
  process.stdout.write(`API_BASE_URL=${sandbox.url}\nAPI_KEY=${sandbox.apiKey}\n`);
  await firstValueFrom(stopSignals());
  await sandbox.close();
}

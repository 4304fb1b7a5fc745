import { resolve } from 'node:path';
import { firstValueFrom } from 'rxjs';
import { CellarstreamError } from '../core/errors.ts';
import { startSandbox } from '../sandbox/index.ts';
import type { Sandbox } from '../sandbox/index.ts';
import { writeAccountFiles } from './write-account-files.ts';
import { sandboxOptions } from './sandbox-flags.ts';
import type { SandboxFlags } from './sandbox-flags.ts';
import { stopSignals } from './stop.ts';

/** `cellarstream sandbox`: runs the sandbox's API without the service, until a signal. */
export async function sandboxCommand(flags: SandboxFlags): Promise<void> {
  const { host, port, apiKey, accounts, accountsDir } = flags;
  const options = { ...sandboxOptions(flags), host, port, apiKey, accounts };
  const sandbox = await startSandbox(options).catch((cause: NodeJS.ErrnoException) => {
    if (cause.syscall !== 'listen') throw cause;
    const advice = `can't listen on ${host}:${port} (${cause.code}): choose others with --host and --port`;
    throw new CellarstreamError('SETTINGS', advice);
  });
  try {
    if (accountsDir !== undefined) await writeAccountFiles(accountsDir, sandbox);
    process.stdout.write(howToUse(sandbox, accountsDir));
    await firstValueFrom(stopSignals());
  } finally {
    await sandbox.close();
  }
}

/**
 * Returns settings, in the format of `.env`, to run the service against the sandbox. With `accountsDir`, they are for a fleet with all
 * accounts. Otherwise they are for the first account, and comments contain the API keys of the other accounts.
 */
function howToUse({ url, apiKey, accounts }: Sandbox, accountsDir: string | undefined): string {
  const lines = [`API_BASE_URL=${url}`];
  if (accountsDir !== undefined) {
    lines.push(`ACCOUNTS_DIR=${resolve(accountsDir)}`);
  } else {
    lines.push(`API_KEY=${apiKey}`);
    for (const other of accounts.slice(1)) lines.push(`# ${other.name}: API_KEY=${other.apiKey}`);
  }
  return lines.map((line) => `${line}\n`).join('');
}

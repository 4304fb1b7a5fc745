#!/usr/bin/env node
import { Argument, Command, CommanderError, Option } from 'commander';
import { RESOURCES } from './config/config.ts';
import type { Resource } from './config/config.ts';
import { CellarstreamError, describeError } from './core/errors.ts';
import { VERSION } from './core/version.ts';
import type { ReplayFlags } from './commands/replay.ts';
import { count, port, sandboxFlags, some } from './commands/sandbox-flags.ts';
import type { ResyncFlags } from './commands/resync.ts';
import type { VerifyFlags } from './commands/verify.ts';
import type { DemoFlags, SandboxFlags } from './commands/sandbox-flags.ts';

// Commands are imported when they are run, so that --help and errors appear at once.

const OF_FLEET = 'account of a fleet, by the name of its file in ACCOUNTS_DIR';
const EXIT = { done: 0, failed: 1, usage: 2 } as const;

const program = new Command('cellarstream')
  .description('Turns a rate-limited REST API into trustworthy change events on Kafka.')
  .version(VERSION)
  .showHelpAfterError('(cellarstream --help lists the commands)')
  .addHelpText(
    'after',
    '\nSettings come from the environment or a .env file: see docs/settings.md.',
  )
  .exitOverride();

program
  .command('run')
  .description('runs the service: from the API to Kafka, until SIGTERM or SIGINT')
  .action(async () => (await import('./commands/run.ts')).runCommand());

sandboxFlags(program.command('demo'))
  .description(
    'runs a sandbox of the API, Kafka, a schema registry and the service; needs no settings',
  )
  .option('--accounts <n>', 'accounts of the API, each with as many orders and changes', some, 1)
  .option(
    '--instances <n>',
    'instances that the accounts are assigned to; each is a process and can be killed',
    some,
    1,
  )
  .action(async (flags: DemoFlags) => (await import('./commands/demo.ts')).demoCommand(flags));

sandboxFlags(program.command('sandbox'))
  .description('runs a sandbox of the API alone, with data that changes')
  .option('--host <address>', 'address to listen on', '127.0.0.1')
  .option('--port <n>', 'port to listen on; 0 takes a free one', port, 8080)
  .option('--api-key <key>', 'the key that the login accepts', 'sandbox-key')
  .option('--accounts <n>', 'accounts, each with a key, records and quotas of its own', count, 1)
  .option('--accounts-dir <dir>', 'writes a file <account>.env for each account into this folder')
  .action(async (flags: SandboxFlags) =>
    (await import('./commands/sandbox.ts')).sandboxCommand(flags),
  );

program
  .command('check')
  .description(
    'tries settings, login, a page of each list, Kafka and registry; prints what works, and why the rest does not',
  )
  .option('--account <name>', `${OF_FLEET}; default: a line for each`)
  .action(async (flags: { account?: string }) => {
    const fine = await (await import('./commands/check.ts')).checkCommand(flags);
    process.exitCode = fine ? EXIT.done : EXIT.failed;
  });

program
  .command('describe')
  .description('prints what a description of an API says, or all its mistakes')
  .argument('<file>', 'the description, YAML or JSON')
  .action(async (file: string) => (await import('./commands/describe.ts')).describeCommand(file));

program
  .command('accounts')
  .description(
    'prints which instance of a fleet runs which account, since when, and the state of the account',
  )
  .option('--json', 'prints JSON lines instead of a table')
  .action(async (flags: { json?: boolean }) => {
    const fine = await (await import('./commands/accounts.ts')).accountsCommand(flags);
    process.exitCode = fine ? EXIT.done : EXIT.failed;
  });

program
  .command('asyncapi')
  .description('prints an AsyncAPI 3 document of the topics, with the schemas as registered')
  .option('--account <name>', OF_FLEET)
  .action(async (flags: { account?: string }) =>
    (await import('./commands/asyncapi.ts')).asyncApiCommand(flags),
  );

program
  .command('peek')
  .description('prints what would be published, as JSON lines; needs no Kafka')
  .addArgument(new Argument('<resource>', 'the resource to read').choices(RESOURCES))
  .option('--account <name>', OF_FLEET)
  .option('--limit <n>', 'stop after this many events', count)
  .action(async (resource: Resource, flags: { account?: string; limit?: number }) =>
    (await import('./commands/peek.ts')).peekCommand(resource, flags),
  );

program
  .command('replay')
  .description('prints the decoded events of a topic, as JSON lines')
  .argument(
    '<topic>',
    `${RESOURCES.join(', ')}, order-status-changes, dead-letters, or another topic under TOPIC_PREFIX that holds events`,
  )
  .option('--account <name>', `${OF_FLEET}, or under TOPIC_PREFIX where ACCOUNTS_DIR is not set`)
  .option(
    '--from <position>',
    'beginning, latest, a time (ISO 8601), or partition:offset,...',
    'beginning',
  )
  .option('--to <position>', 'latest (as of now), a time, or partition:offset,...', 'latest')
  .option('--follow', 'continues with new events until a signal')
  .option('--key <key>', 'only the events of one record')
  .option('--limit <n>', 'stop after this many events', count)
  .option('--by-time', 'merges the partitions by the time of their events')
  .option('--pretty', 'prints a line for people instead of JSON')
  .action(async (topic: string, flags: ReplayFlags) =>
    (await import('./commands/replay.ts')).replayCommand(topic, flags),
  );

program
  .command('resync')
  .description('publishes again what the API says now, through the running service')
  .option('--account <name>', OF_FLEET)
  .option('--order <n>', 'only this order')
  .addOption(
    new Option('--resource <name>', 'only this list; default: all of RESOURCES').choices(RESOURCES),
  )
  .option('--since <time>', 'only what was modified at that time or later, ISO 8601')
  .option('--no-wait', 'ends as soon as the request is written, and waits for no acknowledgement')
  .option('--timeout <seconds>', 'longest wait, in seconds; 0: no limit', count, 0)
  .action(async (flags: ResyncFlags) => {
    const done = await (await import('./commands/resync.ts')).resyncCommand(flags);
    process.exitCode = done ? EXIT.done : EXIT.failed;
  });

program
  .command('verify')
  .description('compares the topics with the newest certificates, and your own copy with both')
  .addArgument(
    new Argument('[resource...]', 'the lists to look at; default: all of RESOURCES').choices(
      RESOURCES,
    ),
  )
  .option('--account <name>', OF_FLEET)
  .option('--json', 'prints JSON lines instead of a table')
  .option('--file <copy.csv>', 'a copy of the one list named: columns key and sequence')
  .option('--fresh', 'requests a new full scan from the running service first')
  .option('--timeout <seconds>', 'longest wait for that scan, in seconds', some, 600)
  .action(async (resources: Resource[], flags: VerifyFlags) => {
    const fine = await (await import('./commands/verify.ts')).verifyCommand(resources, flags);
    process.exitCode = fine ? EXIT.done : EXIT.failed;
  });

// The reader of our output may close the pipe early (`| head`): that is not an error.
process.stdout.once('error', (error: NodeJS.ErrnoException) => {
  process.stdout.on('error', () => undefined); // ignore further errors
  if (error.code !== 'EPIPE') process.exit(EXIT.failed);
  // A command that handles signals is stopped by one, so that it cleans up.
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(EXIT.done);
});

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
// Connections that are still closing must not delay the exit.
process.exit();

function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  const settings = error instanceof CellarstreamError && error.code === 'SETTINGS';
  // a line for each invalid setting
  process.stderr.write(`cellarstream: ${settings ? error.message : describeError(error)}\n`);
  if (!(error instanceof CellarstreamError) && error instanceof Error) {
    process.stderr.write(`${error.stack}\n`); // a bug: its report needs the stack
  }
  return settings ? EXIT.usage : EXIT.failed;
}

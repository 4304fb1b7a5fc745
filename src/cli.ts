#!/usr/bin/env node
import { Argument, Command, CommanderError, Option } from 'commander';
import type { Resource } from './config/config.ts';
import { CellarstreamError, describeError } from './core/errors.ts';
import { VERSION } from './core/version.ts';
import type { ReplayFlags } from './commands/replay.ts';
import { count, port, sandboxFlags, some } from './commands/sandbox-flags.ts';
import type { ResyncFlags } from './commands/resync.ts';
import type { VerifyFlags } from './commands/verify.ts';
import type { DemoFlags, SandboxFlags } from './commands/sandbox-flags.ts';

// Commands are imported when they are run, so that --help and errors appear at once.

const OF_FLEET = 'account of a fleet: the name of its file in ACCOUNTS_DIR, without .env';
const EXIT = { done: 0, failed: 1, usage: 2 } as const;

/** Waits for a command and sets the exit code: 0 if `isFine` resolves to true, else 1. */
async function exitWith(isFine: Promise<boolean>): Promise<void> {
  process.exitCode = (await isFine) ? EXIT.done : EXIT.failed;
}

const TAKE_NAMES = ['peek', 'replay', 'resync', 'verify'];
/** Names of the API's lists, and of the topics of their events and status changes. */
const known = await knownNames();

/**
 * Returns the names of the API's lists, and of the topics of their events and status changes, without prefix. Both are empty if no command
 * on the command line takes such names.
 */
async function knownNames(): Promise<Record<'lists' | 'topics', readonly string[]>> {
  const isNeeded = process.argv.some((word) => TAKE_NAMES.includes(word));
  if (!isNeeded) return { lists: [], topics: [] };
  const [{ descriptionOf }, { statusTopics }] = await Promise.all([
    import('./config/load-config.ts'),
    import('./description/description.ts'),
  ]);
  try {
    const description = descriptionOf({ env: process.env, cwd: process.cwd() });
    const lists = description.lists.map(({ name }) => name);
    return { lists, topics: [...lists, ...statusTopics(description)] };
  } catch {
    // The description that API_DESCRIPTION names is invalid: the command reports it.
    return { lists: [], topics: ['a list of API_DESCRIPTION'] };
  }
}

/** Restricts an argument or option to the names of the API's lists, if the names are known. */
function ofLists<T extends Argument | Option>(one: T): T {
  if (known.lists.length > 0) one.choices(known.lists);
  return one;
}

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
  .description('runs the service until SIGTERM or SIGINT')
  .option('--believe', 'starts although check --measure refuted claims of the description')
  .action(async (flags: { believe?: boolean }) =>
    (await import('./commands/run.ts')).runCommand(flags),
  );

sandboxFlags(program.command('demo'))
  .description(
    'runs a sandbox of the API, Kafka, a schema registry and the service; needs no settings',
  )
  .option('--accounts <n>', 'number of accounts, each with its own orders and changes', some, 1)
  .option('--instances <n>', 'number of instances that share the accounts, a process each', some, 1)
  .action(async (flags: DemoFlags) => (await import('./commands/demo.ts')).demoCommand(flags));

sandboxFlags(program.command('sandbox'))
  .description('runs only a sandbox of the API, with data that changes')
  .option('--host <address>', 'address to listen on', '127.0.0.1')
  .option('--port <n>', 'port to listen on; 0: any free port', port, 8080)
  .option('--api-key <key>', 'API key of the first account', 'sandbox-key')
  .option('--accounts <n>', 'number of accounts, each with its own key and records', count, 1)
  .option('--accounts-dir <dir>', 'folder to write a file <account>.env for each account into')
  .action(async (flags: SandboxFlags) =>
    (await import('./commands/sandbox.ts')).sandboxCommand(flags),
  );

program
  .command('check')
  .description('tests settings, login, a page of each list, Kafka and registry; prints the results')
  .option('--account <name>', `${OF_FLEET}; default: all of them`)
  .option(
    '--measure',
    'tests what the description claims, in about a minute with at most 15 requests a list; needs no Kafka',
  )
  .action(async (flags: { account?: string; measure?: boolean }) =>
    exitWith((await import('./commands/check.ts')).checkCommand(flags)),
  );

program
  .command('describe')
  .description('checks a description of an API; prints it in words, or lists all its mistakes')
  .argument('<file>', 'the description, YAML or JSON')
  .action(async (file: string) => (await import('./commands/describe.ts')).describeCommand(file));

program
  .command('accounts')
  .description('prints the state of each account of a fleet, and the instance that serves it')
  .option('--json', 'prints JSON lines instead of a table')
  .action(async (flags: { json?: boolean }) =>
    exitWith((await import('./commands/accounts.ts')).accountsCommand(flags)),
  );

program
  .command('asyncapi')
  .description('prints an AsyncAPI 3 document of the topics, with their registered schemas')
  .option('--account <name>', OF_FLEET)
  .action(async (flags: { account?: string }) =>
    (await import('./commands/asyncapi.ts')).asyncApiCommand(flags),
  );

program
  .command('peek')
  .description('prints the events of an initial snapshot as JSON lines; needs no Kafka')
  .addArgument(ofLists(new Argument('<resource>', 'the list to read')))
  .option('--account <name>', OF_FLEET)
  .option('--limit <n>', 'stops after this many events', count)
  .action(async (resource: Resource, flags: { account?: string; limit?: number }) =>
    (await import('./commands/peek.ts')).peekCommand(resource, flags),
  );

program
  .command('replay')
  .description('prints the decoded events of a topic as JSON lines')
  .argument(
    '<topic>',
    `${known.topics.join(', ')}, dead-letters, or another topic under TOPIC_PREFIX that holds events`,
  )
  .option(
    '--account <name>',
    `${OF_FLEET}, or its name under TOPIC_PREFIX if ACCOUNTS_DIR is not set`,
  )
  .option(
    '--from <position>',
    'where to begin: beginning, latest, a time (ISO 8601), or partition:offset,...',
    'beginning',
  )
  .option(
    '--to <position>',
    'where to end: latest (as of now), a time, or partition:offset,...',
    'latest',
  )
  .option('--follow', 'continues with new events until SIGTERM or SIGINT')
  .option('--key <key>', 'prints only the events of the record with this key')
  .option('--limit <n>', 'stops after this many events', count)
  .option('--by-time', 'merges the partitions by the timestamps of their events')
  .option('--pretty', 'prints readable lines instead of JSON')
  .action(async (topic: string, flags: ReplayFlags) =>
    (await import('./commands/replay.ts')).replayCommand(topic, flags),
  );

program
  .command('resync')
  .description('asks the running service to publish records again as the API has them now')
  .option('--account <name>', OF_FLEET)
  .option('--order <n>', 'only this order')
  .addOption(ofLists(new Option('--resource <name>', 'only this list; default: all of RESOURCES')))
  .option('--since <time>', 'only records that were modified at this time (ISO 8601) or later')
  .option('--no-wait', 'ends once the request is written, without waiting for acknowledgements')
  .option(
    '--timeout <seconds>',
    'how long to wait until the service acknowledges the request, in seconds; 0: no limit',
    count,
    0,
  )
  .action(async (flags: ResyncFlags) =>
    exitWith((await import('./commands/resync.ts')).resyncCommand(flags)),
  );

program
  .command('verify')
  .description(
    'compares the topic of each list with the newest certificate of the list; with --file, also your own copy of a list',
  )
  .addArgument(
    ofLists(new Argument('[resource...]', 'the lists to verify; default: all of RESOURCES')),
  )
  .option('--account <name>', OF_FLEET)
  .option('--json', 'prints JSON lines instead of a table')
  .option(
    '--file <copy.csv>',
    'CSV file with your copy of a list, in columns key and sequence; requires exactly one [resource]',
  )
  .option('--fresh', 'first requests a new full scan from the running service')
  .option('--timeout <seconds>', 'longest wait for that scan, in seconds', some, 600)
  .action(async (resources: Resource[], flags: VerifyFlags) =>
    exitWith((await import('./commands/verify.ts')).verifyCommand(resources, flags)),
  );

// The reader of stdout may close the pipe early (`| head`): that is not an error.
process.stdout.once('error', (error: NodeJS.ErrnoException) => {
  process.stdout.on('error', () => undefined); // ignore further errors
  if (error.code !== 'EPIPE') process.exit(EXIT.failed);
  // A command that handles SIGTERM is stopped by it, so that it cleans up.
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

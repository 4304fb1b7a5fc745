/**
 * Loaded before the command into a process that `demo` starts: it ends when the demo does, SIGKILL included, of which nobody
 * is told but by the channel that closes.
 */
process.once('disconnect', () => process.exit(1));

/**
 * Preloaded into the processes that `demo` starts: ends the process when the demo ends. The closing IPC channel shows that even after
 * SIGKILL.
 */
process.once('disconnect', () => process.exit(1));

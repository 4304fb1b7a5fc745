/**
 * Module preloaded into the processes that `demo` starts. It ends the process when the IPC channel to the demo closes, which happens even
 * if the demo is ended by SIGKILL.
 */
process.once('disconnect', () => process.exit(1));

/**
 * Module preloaded into the processes that `demo` starts. It ends the process when the demo ends: the IPC channel to the demo then closes,
 * even if the demo was ended by SIGKILL.
 */
process.once('disconnect', () => process.exit(1));

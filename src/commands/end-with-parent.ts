/**
 * Ends this instance of `cellarstream demo` when the IPC channel to the demo closes, which happens even if SIGKILL ends the demo. The demo
 * preloads this module into its instances.
 */
process.once('disconnect', () => process.exit(1));

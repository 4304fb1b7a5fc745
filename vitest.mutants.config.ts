import { defineConfig } from 'vitest/config';

// Stryker runs the tests in threads, which can't set the time zone for themselves.
process.env.TZ = 'America/Los_Angeles';

/** What mutants of src/streams are held against: its own tests, but for those of ten seconds each. */
export default defineConfig({
  test: {
    include: ['test/streams/**/*.test.ts'],
    exclude: ['test/streams/**/*.property.test.ts'],
    isolate: false, // one worker takes them all: a third of the time
    testTimeout: 60_000, // a busy machine kills no mutant; an endless loop is Stryker's to end
  },
});

/** Chooses the size of a test: `short` in `npm test` and the gate, `long` in `npm run test:long`. */
export function scaled<Of>(short: Of, long: Of): Of {
  return process.env.TEST_LONG ? long : short;
}

/** So many in `npm test`, which is to take minutes; and as many as was promised in `npm run test:long`. */
export function scaled<Of>(short: Of, long: Of): Of {
  return process.env.TEST_LONG ? long : short;
}

import * as real from '../../../src/account/permits/guest-declarations.ts';

export * from '../../../src/account/permits/guest-declarations.ts';

/** A guest asks beside a service whose declaration runs, and counts nothing of it. */
export const guestDeclarations: typeof real.guestDeclarations = (options) => {
  const { log } = options;
  const declare = async (text: string) => ({ ...(await log.declare(text)), entries: [] });
  return real.guestDeclarations({ ...options, log: { declare } });
};

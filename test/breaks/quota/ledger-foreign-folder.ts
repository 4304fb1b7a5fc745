import * as real from '../../../src/account/quotas.ts';
import { withOthers } from '../with-others.ts';

export * from '../../../src/account/quotas.ts';

/** The request times in the folder are believed, whoever has declared requests since. */
export const quotas: typeof real.quotas = (options) => {
  const { writer } = options;
  let declarer: string | undefined;
  const all = real.quotas({
    ...options,
    ...(writer && { writer: { ...writer, get: () => declarer } }),
  });
  return withOthers(all, {
    inherit: (inherited) => {
      declarer = inherited.sent?.declaration.instance;
      return all.inherit(inherited);
    },
  });
};

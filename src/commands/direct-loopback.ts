/** Environment variables by name. */
type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = ['127.0.0.1', 'localhost', '::1'];

/**
 * The proxy settings of an environment, with this machine's own addresses excluded: a demo has its sandbox and its registry on the
 * loopback, where no proxy reaches them.
 */
export function directLoopback(env: Environment): Environment {
  const set = env.no_proxy || env.NO_PROXY;
  const noProxy = [...(set ? [set] : []), ...LOOPBACK].join(',');
  return { no_proxy: noProxy, NO_PROXY: noProxy };
}

type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = ['127.0.0.1', 'localhost', '::1'];

/**
 * Returns `no_proxy` settings that add this machine's own addresses to those of the environment: a demo's sandbox and registry are on the
 * loopback interface, which proxies can't reach.
 */
export function directLoopback(env: Environment): Environment {
  const set = env.no_proxy || env.NO_PROXY;
  const noProxy = [...(set ? [set] : []), ...LOOPBACK].join(',');
  return { no_proxy: noProxy, NO_PROXY: noProxy };
}

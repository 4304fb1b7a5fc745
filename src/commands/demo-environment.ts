import type { Services } from '../devstack/services.ts';

type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = ['127.0.0.1', 'localhost', '::1'];

/**
 * Returns the `no_proxy` settings of the environment, with the loopback addresses added. The demo's sandbox and registry have these
 * addresses, which a proxy can't reach.
 */
export function directLoopback(env: Environment): Environment {
  const set = env.no_proxy || env.NO_PROXY;
  const noProxy = [...(set ? [set] : []), ...LOOPBACK].join(',');
  return { no_proxy: noProxy, NO_PROXY: noProxy };
}

/** Returns the environment variables for the services of a demo: those of this process, with the settings of the demo added or replaced. */
export function demoEnvironment({ brokers, registryUrl }: Services): Environment {
  return {
    ...process.env,
    ...directLoopback(process.env),
    API_DESCRIPTION: '', // the sandbox is that of the built-in API
    API_LOGIN_URL: '',
    KAFKA_BROKERS: brokers.join(','),
    SCHEMA_REGISTRY_URL: registryUrl,
  };
}

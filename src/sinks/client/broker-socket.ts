import net from 'node:net';
import tls from 'node:tls';
import type { ISocketFactory } from 'kafkajs';
import { ADDRESS_ATTEMPT_MS } from '../../core/http-connections.ts';

/** Idle time of a connection after which TCP checks that the broker is still there, in ms: kafkajs' own. */
const KEEP_ALIVE_MS = 60_000;

/** Connects to a broker as kafkajs does by default, and gives each address of its host enough time. */
export const brokerSocket: ISocketFactory = ({ host, port, ssl, onConnect }) => {
  const tcp = {
    host,
    port,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: ADDRESS_ATTEMPT_MS,
  };
  const serverName = net.isIP(host) === 0 ? { servername: host } : {}; // SNI allows no IP addresses
  const socket = ssl
    ? tls.connect({ ...tcp, ...serverName, ...ssl }, onConnect)
    : net.connect(tcp, onConnect);
  return socket.setKeepAlive(true, KEEP_ALIVE_MS);
};

import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A way in which the server differs from its description. */
export type Lie =
  | 'caps the size silently'
  | 'rounds offsets'
  | 'ignores the filter'
  | 'has an exclusive filter'
  | 'reads dates in another zone'
  | 'gives the front for an unknown cursor'
  | 'counts the whole list in a window'
  | 'counts too few records'
  | 'has stamps of whole days'
  | 'empties the list for an unknown parameter'
  | 'finds a record that is not there'
  | 'shows another record alone'
  | 'says more on the last page'
  | 'repeats a key'
  | 'sorts in another order each time'
  | 'repeats the first page behind a cursor'
  | 'fails for a single record';

export interface LyingServer {
  readonly baseUrl: URL;
  /** Addresses of the requests. */
  readonly asked: readonly string[];
  readonly close: () => void;
}

interface Thing {
  readonly id: string;
  readonly name: string;
  readonly updated: string;
}

const COUNT = 130;
const MOST = 50;
const START = Date.UTC(2026, 4, 1);
const PARAMETERS = ['offset', 'page', 'after', 'cursor', 'limit', 'from', 'to'];

function things(lies: ReadonlySet<Lie>): Thing[] {
  return Array.from({ length: COUNT }, (_, nth) => {
    const stamp = new Date(START + ((nth * 37) % COUNT) * 3_700_123).toISOString();
    const updated = lies.has('has stamps of whole days') ? stamp.slice(0, 10) : stamp;
    const id = lies.has('repeats a key') && nth === 9 ? 8 : nth;
    return { id: `t_${1_000 + id}`, name: `thing ${nth}`, updated };
  });
}

/** Starts a server of 130 records that does what the descriptions in `measure-list.test.ts` claim, except for its lies. */
export async function lyingServer(...told: readonly Lie[]): Promise<LyingServer> {
  const lies = new Set(told);
  const all = things(lies);
  const asked: string[] = [];

  const answer = (request: IncomingMessage, response: ServerResponse): void => {
    asked.push(request.url!);
    const url = new URL(request.url!, 'http://localhost');
    const send = (body: unknown, status = 200): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    };
    if (url.pathname === '/things/count') return send({ count: all.length });
    const id = /^\/things\/(.+)$/.exec(url.pathname)?.[1];
    if (id !== undefined) {
      if (lies.has('fails for a single record')) return send({ error: 'sorry' }, 500);
      const found = all.find((each) => each.id === id);
      if (lies.has('shows another record alone')) return send(all[3]);
      if (!found && lies.has('finds a record that is not there')) return send({ ...all[0], id });
      return found ? send(found) : send({ error: 'no such thing' }, 404);
    }
    const get = (name: string) => url.searchParams.get(name);
    const unknown = [...url.searchParams.keys()].filter((name) => !PARAMETERS.includes(name));
    const isEmptied = unknown.length > 0 && lies.has('empties the list for an unknown parameter');
    const shift = lies.has('reads dates in another zone') ? 5 * 3_600_000 : 0;
    const from = get('from') === null ? -Infinity : Date.parse(get('from')!) + shift;
    const to = get('to') === null ? Infinity : Date.parse(get('to')!) + shift;
    const isIn = ({ updated }: Thing) => {
      const at = Date.parse(updated);
      return (lies.has('has an exclusive filter') ? at > from : at >= from) && at <= to;
    };
    const filtered = isEmptied
      ? []
      : lies.has('ignores the filter')
        ? all
        : all.filter((each) => isIn(each));
    const turned = lies.has('sorts in another order each time')
      ? filtered.map(
          (_, nth) => filtered[(nth * (asked.length % 2 === 0 ? 7 : 1)) % filtered.length]!,
        )
      : filtered;
    const most = lies.has('caps the size silently') ? 20 : MOST;
    const size = Math.min(most, Number(get('limit') ?? 10));
    let start = Number(get('offset') ?? 0);
    if (get('page') !== null) start = (Number(get('page')) - 1) * size;
    if (lies.has('rounds offsets')) start = Math.floor(start / size) * size;
    const cursor = get('after') ?? get('cursor');
    if (
      cursor !== null &&
      !(cursor === 't_1049' && lies.has('repeats the first page behind a cursor'))
    ) {
      const place = turned.findIndex((each) => each.id === cursor);
      if (place < 0 && !lies.has('gives the front for an unknown cursor')) {
        return send({ error: 'no such cursor' }, 400);
      }
      start = place + 1;
    }
    const data = turned.slice(start, start + size);
    const more = start + size < turned.length || lies.has('says more on the last page');
    const last = data.at(-1)?.id;
    const isWhole = lies.has('counts the whole list in a window');
    const total = isWhole ? all.length : turned.length;
    send({
      ...{ data, more, total: lies.has('counts too few records') ? Math.min(100, total) : total },
      ...(more && last !== undefined && { next: last }),
    });
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: new URL(`http://127.0.0.1:${port}`),
    asked,
    close: () => server.close(),
  };
}

// Parts of kafkajs that it has no types for: see kafka-fetcher.ts and kafkajs-inner.ts.

declare module 'kafkajs/src/protocol/requests/fetch/v10/request.js' {
  interface FetchRequest {
    readonly replicaId: number;
    readonly maxWaitTime: number;
    readonly minBytes: number;
    readonly maxBytes: number;
    readonly isolationLevel: number;
    readonly topics: readonly {
      readonly topic: string;
      readonly partitions: readonly {
        readonly partition: number;
        readonly fetchOffset: string;
        readonly maxBytes: number;
      }[];
    }[];
  }
  /** What kafkajs' connections send. */
  export default function fetchRequest(request: FetchRequest): { readonly apiName: string };
}

declare module 'kafkajs/src/protocol/error.js' {
  import type { KafkaJSProtocolError } from 'kafkajs';

  const protocolErrors: { createErrorFromCode(code: number): KafkaJSProtocolError };
  export default protocolErrors;
}

/** Whether the service is heard. */
export type ConnectionState =
  | { readonly isLive: true }
  | {
      readonly isLive: false;
      /** When something was heard last, ms on this machine's clock. */
      readonly since: number;
      /** Whether the service answers, and only does not tell this page each second what is new. */
      readonly answers: boolean;
      /** Why the service says that it can't tell what it is asked for: an account that runs elsewhere. */
      readonly refusal?: string | undefined;
    };

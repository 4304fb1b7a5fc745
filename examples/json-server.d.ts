/** The parts of json-server 0.17 that 09-other-api.mjs uses; the package has no types. */
declare module 'json-server' {
  interface Table {
    find(record: object): { assign(fields: object): { write(): void } };
    push(record: object): { write(): void };
    remove(record: object): { write(): void };
  }
  interface Router {
    readonly db: { get(list: string): Table };
  }
  const jsonServer: {
    create(): { use(router: Router): import('node:http').RequestListener };
    router(lists: object): Router;
  };
  export default jsonServer;
}

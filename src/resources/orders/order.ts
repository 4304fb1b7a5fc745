import { loadSchema } from '../../schemas/avro/avro-schema.ts';

/** The image of an order: every field that the API's description lists. */
export const orderSchema = loadSchema(new URL('./order.avsc', import.meta.url));

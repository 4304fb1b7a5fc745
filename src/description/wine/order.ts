import { loadSchema } from '../../schemas/avro/avro-schema.ts';

/** Avro schema of the images of orders (orders as published in events), with every field in the API's description. */
export const orderSchema = loadSchema(new URL('./order.avsc', import.meta.url));

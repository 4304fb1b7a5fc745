import { loadSchema } from './load-schema.ts';

/** The image of an order: every field that the API's description lists. */
export const orderSchema = loadSchema('./order.avsc');

import { seeds } from './seeds.ts';

seeds(2, 2);

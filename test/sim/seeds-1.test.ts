import { seeds } from './seeds.ts';

seeds(1, 2);

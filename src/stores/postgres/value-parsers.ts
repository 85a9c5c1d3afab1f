import type pg from 'pg'

/** By the id of a type: bool, int8, int2, int4, json, float4 and float8. Sequences, milliseconds and counts stay far below 2^53. */
const PARSERS: Readonly<Record<number, (text: string) => unknown>> = {
  16: (text) => text === 't',
  20: Number,
  21: Number,
  23: Number,
  114: JSON.parse,
  700: Number,
  701: Number,
}

/** For every connection: `pg.types` is shared with the program around this one, which may have changed it. */
export const VALUE_PARSERS = {
  getTypeParser: (id: number) => PARSERS[id] ?? ((text: string) => text),
} as pg.CustomTypesConfig

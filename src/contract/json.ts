/** A JSON value as the engine carries it. `bigint` stands for an integer that a double cannot hold. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject

/** A member whose value is `undefined` is treated as absent. */
export interface JsonObject {
  [key: string]: JsonValue | undefined
}

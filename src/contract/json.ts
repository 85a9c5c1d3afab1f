/** A JSON value inside the engine. `bigint` represents an integer that a double cannot hold. */
export type JsonValue = null | boolean | number | bigint | string | JsonValue[] | JsonObject

/** A field whose value is `undefined` is treated as absent. */
export interface JsonObject {
  [key: string]: JsonValue | undefined
}

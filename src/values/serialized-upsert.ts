import type { Change, Column, JsonObject } from '../contract/index.ts'
import { parseJson } from './json.ts'

type Upsert = Extract<Change, { type: 'upsert' }>

/** The common shape of serialized records. None of their fields is an object or an array. */
export interface SerializedShape {
  /** The fields in order, and the kind of each; no kind for null. */
  readonly columns: readonly Column[]
  /** Parses the text of a record; `parseJson` by default. */
  readonly parse?: (text: string) => JsonObject
  /**
   * Each text is what `stringifyJson` writes, and the columns describe it, by construction. The engine then checks only
   * the first text of a shape on a page. Without it the engine parses every text, treats a record that its shape does
   * not describe as an ordinary one, and quarantines a record whose text is not JSON.
   */
  readonly isTrusted?: boolean
}

/** A record as the text that is stored: the text that `stringifyJson` writes for it. */
export interface SerializedRecord {
  readonly text: string
  /** Share one object between all records of the shape. */
  readonly shape: SerializedShape
}

/**
 * An upsert from a source that already has the JSON text of the record. The engine stores the text and builds no
 * object. The result is the same as that of an ordinary upsert, also for a record that `shape` does not describe.
 *
 * @example
 * ```ts
 * import type { Change } from 'tidemark'
 * import { serializedUpsert, type SerializedShape } from 'tidemark/connector'
 *
 * const shape: SerializedShape = { columns: [{ name: 'id', kinds: ['integer'] }, { name: 'name', kinds: ['string'] }] }
 *
 * export function toChange(line: string, id: string): Change {
 *   return serializedUpsert(id, { text: line, shape })
 * }
 * ```
 */
export function serializedUpsert(
  key: string,
  record: SerializedRecord,
  fields: Omit<Upsert, 'type' | 'key' | 'record'> = {},
): Upsert {
  return Object.assign(new SerializedUpsert(key, record), fields)
}

/**
 * Behaves like any other upsert, also when it is copied or its record replaced. After the first read of `record` the
 * object counts and not the text, because it may have been modified.
 */
class SerializedUpsert implements Upsert {
  readonly type = 'upsert'
  key: string
  declare record: JsonObject
  declare cursor?: string
  declare upstreamUpdatedAt?: string
  declare database?: string
  /** The text until `record` is first read; the record after that. */
  #content: string | JsonObject
  readonly #shape: SerializedShape

  constructor(key: string, { text, shape }: SerializedRecord) {
    this.key = key
    this.#content = text
    this.#shape = shape
    Object.defineProperty(this, 'record', SerializedUpsert.#RECORD)
  }

  static getSerialized(change: Change): SerializedRecord | null {
    return #content in change && typeof change.#content === 'string'
      ? { text: change.#content, shape: change.#shape }
      : null
  }

  /** An own property, so that copying the change by its fields copies the record too. */
  static readonly #RECORD: PropertyDescriptor & ThisType<SerializedUpsert> = {
    enumerable: true,
    configurable: true,
    get() {
      if (typeof this.#content === 'string')
        this.#content = parseSerialized({ text: this.#content, shape: this.#shape })
      return this.#content
    },
    set(record: JsonObject) {
      this.#content = record
    },
  }
}

/** The text of a record that has not been read as an object; null for any other change. */
export function getSerializedRecord(change: Change): SerializedRecord | null {
  return SerializedUpsert.getSerialized(change)
}

/** Throws if the text is not JSON. */
export function parseSerialized({ text, shape: { parse } }: SerializedRecord): JsonObject {
  return parse === undefined ? (parseJson(text) as JsonObject) : parse(text)
}

import type { Change, Column, JsonObject } from '../contract/index.ts'

type Upsert = Extract<Change, { type: 'upsert' }>

/** The common shape of serialized records. None of their fields is an object or an array. */
export interface SerializedShape {
  /** The fields and the kind of each. */
  readonly columns: readonly Column[]
  /** Parses the text of a record. */
  readonly parse: (text: string) => JsonObject
}

/** A record as the text that is stored. */
export interface SerializedRecord {
  readonly text: string
  readonly shape: SerializedShape
}

/**
 * An upsert from a source that already has the serialized text, so that no record object is built. It behaves like any
 * other change, also when it is copied or its record replaced. After the first read of `record` the object counts and
 * not the text, because it may have been modified.
 */
export class SerializedUpsert implements Upsert {
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

  /** The text of a record that has not been read as an object; null otherwise. */
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
      if (typeof this.#content === 'string') this.#content = this.#shape.parse(this.#content)
      return this.#content
    },
    set(record: JsonObject) {
      this.#content = record
    },
  }
}

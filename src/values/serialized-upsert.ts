import type { Change, Column, JsonObject } from '../contract/index.ts'

type Upsert = Extract<Change, { type: 'upsert' }>

/** What records that are written alike have in common. None of their members is an object or a list. */
export interface SerializedShape {
  /** The members and the kind of each. */
  readonly columns: readonly Column[]
  /** The record that a text was written of. */
  readonly parse: (text: string) => JsonObject
}

/** A record as the text it lands as. */
export interface SerializedRecord {
  readonly text: string
  readonly shape: SerializedShape
}

/**
 * An upsert whose record nobody had to make: a source had its text at hand. To whoever looks it is a change like any other, also
 * when it is copied or its record replaced; but from the first look on, the record counts and not the text, for it may have
 * been changed.
 */
export class SerializedUpsert implements Upsert {
  readonly type = 'upsert'
  key: string
  declare record: JsonObject
  declare cursor?: string
  declare upstreamUpdatedAt?: string
  declare database?: string
  /** The text, until somebody looks; from then on the record. */
  #content: string | JsonObject
  readonly #shape: SerializedShape

  constructor(key: string, { text, shape }: SerializedRecord) {
    this.key = key
    this.#content = text
    this.#shape = shape
    Object.defineProperty(this, 'record', SerializedUpsert.#RECORD)
  }

  /** The text of a record that nobody has looked at. */
  static getSerialized(change: Change): SerializedRecord | null {
    return #content in change && typeof change.#content === 'string' ? { text: change.#content, shape: change.#shape } : null
  }

  /** A member of the change itself: what copies it member by member copies the record too. */
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

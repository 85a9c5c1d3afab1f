import type { Change, Column, JsonObject } from '../contract/index.ts'

type Upsert = Extract<Change, { type: 'upsert' }>

/** What records that are written alike have in common. None of their members is an object or a list. */
export interface WrittenShape {
  /** The members and the kind of each. */
  readonly columns: readonly Column[]
  /** The record that a text was written of. */
  readonly read: (text: string) => JsonObject
}

/** A record as the text it lands as. */
export interface Written {
  readonly text: string
  readonly shape: WrittenShape
}

/**
 * An upsert whose record nobody had to make: a source had its text at hand. To whoever looks it is a change like any other, also
 * when it is copied or its record replaced; but from the first look on, the record counts and not the text, for it may have
 * been changed.
 */
export class WrittenUpsert implements Upsert {
  readonly type = 'upsert'
  key: string
  declare record: JsonObject
  declare cursor?: string
  declare upstreamUpdatedAt?: string
  declare database?: string
  /** The text, until somebody looks; from then on the record. */
  #held: string | JsonObject
  readonly #shape: WrittenShape

  constructor(key: string, { text, shape }: Written) {
    this.key = key
    this.#held = text
    this.#shape = shape
    Object.defineProperty(this, 'record', WrittenUpsert.#RECORD)
  }

  /** The text of a record that nobody has looked at. */
  static unread(change: Change): Written | null {
    return #held in change && typeof change.#held === 'string' ? { text: change.#held, shape: change.#shape } : null
  }

  /** A member of the change itself: what copies it member by member copies the record too. */
  static readonly #RECORD: PropertyDescriptor & ThisType<WrittenUpsert> = {
    enumerable: true,
    configurable: true,
    get() {
      if (typeof this.#held === 'string') this.#held = this.#shape.read(this.#held)
      return this.#held
    },
    set(record: JsonObject) {
      this.#held = record
    },
  }
}

import type { Query } from '../kit/http-client.ts'
import type { FieldPath } from './field-path.ts'
import type { RecordMapping, TimeFormat } from './record-mapping.ts'

/** A declarative description of how to read one stream of an API. */
export interface RestStream extends RecordMapping {
  readonly name: string
  /** A path below the base URL. */
  readonly path: string
  /** Parameters of every request: filters, fields, the order that `page` relies on. */
  readonly query?: Query
  /** The path of the record list in a response. The default is the whole response. */
  readonly records?: FieldPath
  /** How to read the complete list. */
  readonly page: ListPaging
  /** How to read changes. Without it every cycle reads the complete list and sweeps the records that are not in it. */
  readonly follow?: ChangesPaging
  /**
   * The visibility delay of a change, plus the clock error of the source, plus the resolution of its timestamps. The default is
   * 30 seconds.
   */
  readonly lagMs?: number
  /**
   * How to find deletions that `follow` does not report. 'ignore': deleted records stay until the next backfill. 'sweep': every
   * cycle reads the complete list. An object describes where the source reports deletions.
   */
  readonly deletes?: 'ignore' | 'sweep' | DeletesStream
  /** How long the source keeps records marked as `deleted`. The default is forever. After a longer pause a backfill is needed. */
  readonly retentionMs?: number
  /**
   * How to read one record, for `tidemark why-not` and before a sweep. `{key}` in the path is replaced by the key. If the source
   * returns deleted records with a flag instead of 404 or 410, set `deleted`.
   */
  readonly lookup?: {
    readonly path: string
    /** Its path in the response. The default is the whole response. */ readonly record?: FieldPath
  }
}

/** A separate list of deletions, such as an audit log or a trash. Each entry contains the key of a deleted record. */
export interface DeletesStream {
  readonly path: string
  readonly query?: Query
  readonly records?: FieldPath
  readonly key: RecordMapping['key']
  /** The time of the deletion. */
  readonly updatedAt: FieldPath
  readonly time?: TimeFormat
  readonly follow: KeysetPaging | TimestampPaging | WindowPaging
  /** How long the source keeps deletions. The default is forever. After a longer pause a backfill is needed. */
  readonly retentionMs?: number
}

/** The query parameter that sets the page size, and its value. */
export interface PageSizeParameter {
  readonly parameter: string
  readonly value: number
}

/** The paging of a list that contains every record. */
export type ListPaging =
  | NoPaging
  | TokenPaging
  | LinkPaging
  | PageNumberPaging
  | OffsetPaging
  | KeysetPaging
  | TimestampPaging

/** The complete list in one response. */
export interface NoPaging {
  readonly kind: 'none'
}

/** A response contains the token of the next page. */
export interface TokenPaging {
  readonly kind: 'token'
  /** The query parameter of the token. */
  readonly parameter: string
  /** The path of the token in the response, or in the last record of the page. */
  readonly next: FieldPath | { readonly last: FieldPath }
  /** The path of a flag that says whether more pages follow. Required with `last`. */
  readonly more?: FieldPath
  readonly size?: PageSizeParameter
}

/** A response contains a link to the next page. */
export interface LinkPaging {
  readonly kind: 'link'
  /** The path of the link in the response. The default is the `Link` header. */
  readonly next?: FieldPath
  readonly size?: PageSizeParameter
}

/** Pages are requested by number. */
export interface PageNumberPaging {
  readonly kind: 'pageNumber'
  readonly parameter: string
  /** The number of the first page. The default is 1. */
  readonly first?: number
  readonly size?: PageSizeParameter
  /** Paths of the number of records, the number of pages, or a flag for more pages. Without any, an empty page ends the list. */
  readonly total?: FieldPath
  readonly pages?: FieldPath
  readonly more?: FieldPath
}

/** Pages are requested by offset. */
export interface OffsetPaging {
  readonly kind: 'offset'
  readonly parameter: string
  readonly size: PageSizeParameter
  readonly total?: FieldPath
  readonly more?: FieldPath
}

/**
 * Filtered and sorted by `updatedAt`, then by id. For the `page` of a swept list, also set `lookup`: a record whose timestamp goes
 * back while the list is read is not seen.
 */
export interface KeysetPaging {
  readonly kind: 'keyset'
  /** The parameters of the cursor: records after the timestamp, or with the same timestamp and a greater id. */
  readonly after: string
  readonly afterId: string
  /** The parameter of the upper bound, inclusive. */
  readonly until?: string
  readonly size: PageSizeParameter
  /** The id field. The default is the key. */
  readonly id?: string
  readonly ids?: 'binary' | 'numeric'
  /** The path of a flag for more pages. Without it, an empty page ends the list. */
  readonly more?: FieldPath
}

/** Filtered and sorted by `updatedAt` alone. */
export interface TimestampPaging {
  readonly kind: 'timestamp'
  readonly since: string
  /** Whether the filter includes the given time ('from', the default) or not ('above'). */
  readonly bound?: 'from' | 'above'
  readonly until?: string
  readonly size: PageSizeParameter
}

/** Changes since a time, in any order, in pages linked by tokens or links. */
export interface WindowPaging {
  readonly kind: 'window'
  readonly since: string
  readonly until?: string
  /** Page numbers and offsets are unsafe: a record that changes again leaves the window and shifts others out of view. */
  readonly page: NoPaging | TokenPaging | LinkPaging
  readonly overlapMs?: number
}

/** An event log whose event ids are cursors. */
export interface EventPaging {
  readonly kind: 'events'
  readonly path: string
  readonly query?: Query
  readonly records?: FieldPath
  readonly id: string
  /** The path of the time of the event. */
  readonly at: FieldPath
  /** The time format. The default is the format of the records. */
  readonly time?: TimeFormat
  /** The query parameter for the id of the last known event; selects the events after it. */
  readonly after: string
  readonly order: 'newest-first' | 'oldest-first'
  readonly more: FieldPath
  /** Query parameters that select the newest event, as the only one or the first of a page. */
  readonly newest: Query
  /** The path of the record inside the event; it contains the stream's `key`. */
  readonly record: FieldPath
  /** Which events are deletions, by value or by suffix such as `*.deleted`. */
  readonly deletions?: { readonly at: FieldPath; readonly are: readonly string[] }
  /** Which events belong to this stream. The default is all. */
  readonly only?: { readonly at: FieldPath; readonly are: readonly string[] }
  /** How long the log keeps events. The default is forever. After a longer pause a backfill is needed. */
  readonly retentionMs?: number
}

/** The paging of a request for changes. */
export type ChangesPaging = KeysetPaging | TimestampPaging | WindowPaging | EventPaging

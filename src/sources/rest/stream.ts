import type { Query } from '../kit/http-client.ts'
import type { FieldPath } from './field-path.ts'
import type { RecordMapping, TimeFormat } from './record-mapping.ts'

/** How one stream of an API is read, in words instead of code. */
export interface RestStream extends RecordMapping {
  readonly name: string
  /** Below the base URL. */
  readonly path: string
  /** Sent with every page: filters, fields, the order that `page` relies on. */
  readonly query?: Query
  /** Where the list of records stands in an answer; all of it unless given. */
  readonly records?: FieldPath
  /** How the whole list is read. */
  readonly page: ListPaging
  /** How what changed is read; without it every cycle reads the whole list, and what is not in it is swept. */
  readonly follow?: ChangesPaging
  /** How long a change may take until it can be found, plus the error of the source's clock, plus the coarseness of its timestamps. 30 seconds unless given. */
  readonly lagMs?: number
  /**
   * What `follow` cannot tell. 'ignore': what is deleted stays until the next backfill. 'sweep': deletions matter more than
   * fresh changes, so the whole list is read every time after all. Or where the source tells them.
   */
  readonly deletes?: 'ignore' | 'sweep' | DeletesStream
  /** How long the source keeps records that are marked as `deleted`; for ever unless given. After a longer absence a backfill is needed. */
  readonly retentionMs?: number
  /**
   * Where one record is found, `{key}` in the path standing for its key: for `tidemark why-not` and before a sweep. A source that
   * answers for a deleted record with a mark instead of 404 or 410 needs `deleted`.
   */
  readonly lookup?: { readonly path: string; /** Where it stands in the answer; all of it unless given. */ readonly record?: FieldPath }
}

/** Deletions that are told elsewhere: an audit log, a trash. Each record there names the key of one that is gone. */
export interface DeletesStream {
  readonly path: string
  readonly query?: Query
  readonly records?: FieldPath
  readonly key: RecordMapping['key']
  /** When it was deleted. */
  readonly updatedAt: FieldPath
  readonly time?: TimeFormat
  readonly follow: KeysetPaging | TimestampPaging | WindowPaging
  /** How long deletions are kept there; for ever unless given. After a longer absence a backfill is needed. */
  readonly retentionMs?: number
}

export interface PageSizeParameter {
  readonly parameter: string
  readonly value: number
}

export type ListPaging = NoPaging | TokenPaging | LinkPaging | PageNumberPaging | OffsetPaging | KeysetPaging | TimestampPaging

/** The whole list in one answer. */
export interface NoPaging {
  readonly kind: 'none'
}

/** An answer names the next page. */
export interface TokenPaging {
  readonly kind: 'token'
  /** Sent with the token. */
  readonly parameter: string
  /** Where the token stands; or where it stands in the last record of the page, where that is the position. */
  readonly next: FieldPath | { readonly last: FieldPath }
  /** Whether more follows, where the source says so besides. Needed with `last`. */
  readonly more?: FieldPath
  readonly size?: PageSizeParameter
}

/** An answer links to the next page. */
export interface LinkPaging {
  readonly kind: 'link'
  /** In the header `Link` unless given. */
  readonly next?: FieldPath
  readonly size?: PageSizeParameter
}

export interface PageNumberPaging {
  readonly kind: 'pageNumber'
  readonly parameter: string
  /** 1 unless given. */
  readonly first?: number
  readonly size?: PageSizeParameter
  /** How many records there are in all, or pages, or whether more follow; an empty page ends the list where none is given. */
  readonly total?: FieldPath
  readonly pages?: FieldPath
  readonly more?: FieldPath
}

export interface OffsetPaging {
  readonly kind: 'offset'
  readonly parameter: string
  readonly size: PageSizeParameter
  readonly total?: FieldPath
  readonly more?: FieldPath
}

/**
 * Filtered and sorted by `updatedAt`, and by id within one moment. As `page` of a list that is swept, give a `lookup` too: a record
 * whose time goes back while the list is read is not seen.
 */
export interface KeysetPaging {
  readonly kind: 'keyset'
  /** The parameters of the position: later than the moment, or of that very moment and above the id. */
  readonly after: string
  readonly afterId: string
  /** No later than. */
  readonly until?: string
  readonly size: PageSizeParameter
  /** The key unless given. */
  readonly id?: string
  readonly ids?: 'binary' | 'numeric'
  /** An empty page ends the list where it is not given. */
  readonly more?: FieldPath
}

/** Filtered and sorted by `updatedAt` alone. */
export interface TimestampPaging {
  readonly kind: 'timestamp'
  readonly since: string
  /** Whether the filter includes the moment it is given; 'from' unless given. */
  readonly bound?: 'from' | 'above'
  readonly until?: string
  readonly size: PageSizeParameter
}

/** What changed since a moment, in no particular order, in pages that name the next. */
export interface WindowPaging {
  readonly kind: 'window'
  readonly since: string
  readonly until?: string
  /** Not by number or offset: a record that changes again leaves the window, and another would slip through unseen. */
  readonly page: NoPaging | TokenPaging | LinkPaging
  readonly overlapMs?: number
}

/** A log of events, each with an id as position. */
export interface EventPaging {
  readonly kind: 'events'
  readonly path: string
  readonly query?: Query
  readonly records?: FieldPath
  readonly id: string
  /** When it happened. */
  readonly at: FieldPath
  /** As in the records unless given. */
  readonly time?: TimeFormat
  /** Sent with the id of the last event known: asks for those that follow it. */
  readonly after: string
  readonly order: 'newest-first' | 'oldest-first'
  readonly more: FieldPath
  /** Asks for the newest event alone, as the only one or the first of a page. */
  readonly newest: Query
  /** The record inside the event; the stream's `key` is a member of it. */
  readonly record: FieldPath
  /** Which events are deletions: a value, or one that ends as `*.deleted` does. */
  readonly deletions?: { readonly at: FieldPath; readonly are: readonly string[] }
  /** Which events are of this stream; all unless given. */
  readonly only?: { readonly at: FieldPath; readonly are: readonly string[] }
  /** How long the log keeps events; for ever unless given. After a longer absence a backfill is needed. */
  readonly retentionMs?: number
}

export type ChangesPaging = KeysetPaging | TimestampPaging | WindowPaging | EventPaging

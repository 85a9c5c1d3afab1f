import type { ErrorRule } from './error-rules.ts'
import type { FieldPath } from './field-path.ts'
import type { RecordFilter } from './record-filter.ts'
import type { RecordMapping, TimeFormat } from './record-mapping.ts'
import type { RequestTemplate } from './request-template.ts'
import type { DecodeRule } from './response-format.ts'

/** A declarative description of how to read one stream of an API. */
export interface RestStream extends RecordMapping, RequestTemplate {
  readonly name: string
  /** The path of the record list in a response; with `relay` paging, of the connection. The default is the whole response. */
  readonly records?: FieldPath
  /** The format of the responses. The default is JSON. */
  readonly decode?: DecodeRule
  /** Which records belong to the stream. A record that no longer does is deleted. The default is all. */
  readonly filter?: readonly RecordFilter[]
  /** The meaning of failed responses, and of successful ones that report a failure. The first rule that matches applies. */
  readonly errors?: readonly ErrorRule[]
  /** Reads the stream once per record of another stream, per value of a list, or per time window. */
  readonly partitions?: PartitionRule
  /**
   * Records from this time on, such as 2024-01-31: it is sent as the start of `follow`, of `timestamp` paging or of the time
   * windows. The default is all.
   */
  readonly since?: string
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

/** How a stream is split into partitions, each of which is read, and followed, by itself. */
export type PartitionRule = ParentPartitions | ListPartitions | WindowPartitions

/** One partition per record of another stream of the source. `{parent.<field>}` in the request is a field of that record. */
export interface ParentPartitions {
  readonly parent: string
  /** Fields that are added to each record, from placeholders of the request: `{ project_id: 'parent.id' }`. */
  readonly include?: Readonly<Record<string, string>>
  /** Partitions that are read at the same time, within the rate limits. The default is 1. */
  readonly concurrency?: number
}

/** One partition per value. `{partition}` in the request is the value. */
export interface ListPartitions {
  readonly values: readonly string[]
  /** Fields that are added to each record: `{ region: 'partition' }`. */
  readonly include?: Readonly<Record<string, string>>
  readonly concurrency?: number
}

/**
 * One partition per time window of the complete list, oldest first, for sources that limit the length of a window. Adjacent
 * windows overlap by one unit of `time`, so that no record is lost at a border. Filter by a time that does not change, such as
 * the creation, or set `lookup`: a record that moves to a window that was read is not seen.
 */
export interface WindowPartitions {
  /** The parameters of the start and the end of a window. */
  readonly since: string
  readonly until: string
  /** The start of the first window, RFC 3339. */
  readonly from: string
  /** The length of a window, as a duration such as P30D. */
  readonly step: string
  /** The format of the parameters. The default is the format of the records. */
  readonly time?: TimeFormat
}

/** A separate list of deletions, such as an audit log or a trash. Each entry contains the key of a deleted record. */
export interface DeletesStream extends RequestTemplate {
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
  | RelayPaging
  | ExportPaging

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

/** A GraphQL connection, with `pageInfo` and either `nodes` or `edges`. `records` is its path. */
export interface RelayPaging {
  readonly kind: 'relay'
  /** The variable of the cursor. The default is 'after'. */
  readonly parameter?: string
  readonly size?: PageSizeParameter
}

/**
 * The source writes the list to files in a job of its own: it is created, polled and downloaded. The id of the job is in the
 * state, so a cycle that was interrupted continues with it. A job that failed or expired is created again, up to three times.
 * The request of the stream creates the job; `{job}` in the other paths is its id.
 */
export interface ExportPaging {
  readonly kind: 'export'
  /** The path of the id of the job in the response that creates it. */
  readonly job: FieldPath
  readonly poll: ExportPoll
  readonly download: ExportDownload
}

/** How to learn whether an export job is done. */
export interface ExportPoll {
  /** Contains `{job}`. */
  readonly path: string
  readonly status: FieldPath
  readonly done: readonly string[]
  readonly failed?: readonly string[]
  /** Path of the number of records. A download with fewer is not accepted. */
  readonly total?: FieldPath
  /** The time between two requests. The default is 5 seconds. */
  readonly everyMs?: number
  /** A job that takes longer is created again. The default is 6 hours. */
  readonly maxMs?: number
}

/** Where the records of an export job are: at a path, or in the files that the status of the job names. */
export interface ExportDownload {
  /** Contains `{job}`. */
  readonly path?: string
  /** Path of the URL of the file, or of the list of URLs, in the status of the job. */
  readonly urls?: FieldPath
  /** The base URL of the files, if they are on another server. It receives no credentials. */
  readonly baseUrl?: string
  /** The next part of the download: the header with its token, and the parameter for it. */
  readonly next?: { readonly header: string; readonly parameter: string }
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
  readonly page: NoPaging | TokenPaging | LinkPaging | RelayPaging
  readonly overlapMs?: number
  /** The longest window that the source accepts, as a duration such as P7D. Needs `until`. */
  readonly step?: string
}

/** An event log whose event ids are cursors. */
export interface EventPaging {
  readonly kind: 'events'
  readonly path: string
  readonly query?: RequestTemplate['query']
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
  readonly newest: Readonly<Record<string, string | number | boolean>>
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

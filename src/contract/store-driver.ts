import type { Store } from './store.ts'

/** A kind of store: found by the scheme of its URL. `registerStore` of tidemark/store adds one. */
export interface StoreDriver {
  /** In lower case, without the colon. */
  readonly schemes: readonly string[]
  /** Reads the URL and opens nothing. Throws STORE_URL_INVALID. A relative file belongs to `folder`. */
  locate(url: string, folder: string): StoreLocation
}

/** A store that may not be there yet. */
export interface StoreLocation {
  /** The name of the database product, for messages. */
  readonly product: string
  /** Where the rows are kept. Beside a file the key that seals states is kept too; a server needs one from outside. */
  readonly storage: { readonly kind: 'memory' } | { readonly kind: 'file'; readonly path: string } | { readonly kind: 'server' }
  /** For people: without a password, and relative to `folder` where that is shorter. */
  describe(folder: string): string
  /** Makes the tables on first use, and migrates those of an older version. */
  open(options: StoreOpenOptions): Promise<Store>
  /**
   * Looks without leaving a trace: the tenant if anything was kept for it, else null; with `orAny`, some tenant that is there.
   */
  findTenant(tenant: string, options?: { readonly orAny?: boolean }): Promise<string | null>
  /** One statement of the user's own, on a connection that cannot write. */
  select(sql: string, options: SelectOptions): Promise<SelectResult>
  readonly syntax: QuerySyntax
}

export interface StoreOpenOptions {
  readonly tenant: string
  /** Called now and then while a store of an older version is migrated, which can take minutes. */
  readonly onMigration?: (progress: { readonly moved: number; readonly total: number }) => void
}

export interface SelectOptions {
  /** 0 for all. */
  readonly limit: number
  readonly tenant: string
  /** How long it may take; see QuerySyntax.deadlineCondition. */
  readonly deadlineMs?: number
  /** In ms: the tenant's tables appear as they were then. */
  readonly asOf?: number | undefined
}

/** A cell is a number, a bigint, a text, a boolean, null or parsed JSON. */
export interface SelectResult {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  /** There are more than were asked for. */
  readonly truncated: boolean
}

/** How the database writes what the query tools put together. Names are quoted with double quotes everywhere. */
export interface QuerySyntax {
  /** The table of a database, by the name that `databases` tells. */
  tableReference(table: string): string
  /** A text literal. */
  textLiteral(value: string): string
  /** Whether the text of a column contains a text; both are given as SQL. */
  contains(column: string, text: string): string
  /** A condition to put into every statement where the database cannot end one by itself. */
  readonly deadlineCondition: string | null
}

import type { Store } from './store.ts'

/** A type of store, selected by the scheme of its URL. `registerStore` of tidemark/store adds one. */
export interface StoreDriver {
  /** In lower case, without the colon. */
  readonly schemes: readonly string[]
  /**
   * Parses the URL without opening anything. Throws STORE_URL_INVALID. A relative path is resolved against `folder`.
   */
  locate(url: string, folder: string): StoreLocation
}

/** The location of a store that may not exist yet. */
export interface StoreLocation {
  /** The name of the database product, for messages. */
  readonly product: string
  /**
   * Where the rows are stored. For a file, the key that encrypts states is stored next to it; a server needs a key from
   * outside.
   */
  readonly storage:
    | { readonly kind: 'memory' }
    | { readonly kind: 'file'; readonly path: string }
    | { readonly kind: 'server' }
  /** For display: without a password, and relative to `folder` if that is shorter. */
  describe(folder: string): string
  /** Creates the tables on first use, and migrates the tables of an older version. */
  open(options: StoreOpenOptions): Promise<Store>
  /**
   * Looks up a tenant without writing anything: the tenant if it has data, else null; with `orAny`, any tenant that has
   * data.
   */
  findTenant(tenant: string, options?: { readonly orAny?: boolean }): Promise<string | null>
  /** `select` follows SelectOptions.only. */
  readonly confinesSelect?: true
  /** Runs one user-supplied statement on a read-only connection. */
  select(sql: string, options: SelectOptions): Promise<SelectResult>
  readonly syntax: QuerySyntax
}

/** Options that every store driver receives when it opens a store. */
export interface StoreOpenOptions {
  readonly tenant: string
  /** Called periodically while a store of an older version is migrated, which can take minutes. */
  readonly onMigration?: (progress: { readonly moved: number; readonly total: number }) => void
}

/** Limits of a query on the tables of a tenant. */
export interface SelectOptions {
  /** 0 for no limit. */
  readonly limit: number
  readonly tenant: string
  /** How long it may take; see QuerySyntax.deadlineCondition. */
  readonly deadlineMs?: number
  /** In ms: reads the tenant's tables as of this time. */
  readonly asOf?: number | undefined
  /**
   * For a statement of a person with limited rights: it may read the tables of these databases of the tenant and their
   * histories, call functions that only compute, and nothing else (ARGUMENT_INVALID). It also stops at the deadline, and
   * at RESULT_BYTES_MAX. See StoreLocation.confinesSelect.
   */
  readonly only?: readonly string[]
  /** Returns the plan of the statement instead of its rows. */
  readonly plan?: boolean
}

/** The result of a confined statement is truncated after about this many bytes. */
export const RESULT_BYTES_MAX = 4_194_304

/** A cell is a number, a bigint, a string, a boolean, null or parsed JSON. */
export interface SelectResult {
  readonly columns: readonly string[]
  readonly rows: readonly (readonly unknown[])[]
  /** More rows exist than the limit. */
  readonly truncated: boolean
}

/** The SQL dialect for the query tools. Identifiers are quoted with double quotes in every store. */
export interface QuerySyntax {
  /** The table of a database, by the name that `databases` returns. */
  tableReference(table: string): string
  textLiteral(value: string): string
  /** A condition that is true if the text of a column contains a text; both arguments are SQL. */
  contains(column: string, text: string): string
  /** A condition to add to every statement, for a database that cannot cancel a statement itself. */
  readonly deadlineCondition: string | null
}

import { constants, type DatabaseSyncInstance } from '@photostructure/sqlite'
import { SyncError } from '../../contract/index.ts'
import { createConfinedError } from '../kit/confined-error.ts'

/** SQLite's own action codes; see sqlite3_set_authorizer. */
export type Authorizer = Parameters<DatabaseSyncInstance['setAuthorizer']>[0]

const HEAP_BYTES_MAX = 268_435_456
/** Functions that do more than compute. */
const REFUSED_FUNCTIONS = new Set(['load_extension', 'fts3_tokenizer', 'sqlite_compileoption_get', 'sqlite_source_id'])
/** Virtual tables that read only their arguments. */
const PURE_TABLES = ['json_each', 'json_tree', 'generate_series']

/** Refuses everything but the tables of these databases and their histories. */
export class Confinement {
  refusal: SyncError | null = null
  readonly #tables: ReadonlySet<string>
  /** Every relation of the file, and every virtual table of SQLite. */
  readonly #relations: ReadonlySet<string>

  constructor(db: DatabaseSyncInstance, tenant: string, only: readonly string[]) {
    const names = db
      .prepare(
        `select table_name as name from tidemark_databases d join tidemark_tenants t on t.tenant_id = d.tenant_id
         where t.name = ?1 and d.name in (select value from json_each(?2))`,
      )
      .all(tenant, JSON.stringify(only))
      .map((row) => (row as { name: string }).name.toLowerCase())
    this.#tables = new Set([...names.flatMap((name) => [name, `${name}_history`]), ...PURE_TABLES])
    this.#relations = new Set(
      db
        .prepare('select lower(name) as name from sqlite_schema union all select lower(name) from pragma_module_list')
        .all()
        .map((row) => (row as { name: string }).name),
    )
    db.exec(`pragma hard_heap_limit = ${HEAP_BYTES_MAX}`)
  }

  /** `isOurView`: the read comes from a view that this process created. */
  authorize(action: number, first: string | null, second: string | null, isOurView = false): number {
    const isAllowed =
      action === constants.SQLITE_SELECT ||
      action === constants.SQLITE_RECURSIVE ||
      (action === constants.SQLITE_READ && (isOurView || this.#mayRead((first ?? '').toLowerCase(), second))) ||
      (action === constants.SQLITE_FUNCTION && !REFUSED_FUNCTIONS.has((second ?? '').toLowerCase()))
    if (isAllowed) return constants.SQLITE_OK
    this.refusal ??= createConfinedError(
      action === constants.SQLITE_READ ? `the relation ${first ?? ''}` : `the function ${second ?? first ?? ''}`,
    )
    return constants.SQLITE_DENY
  }

  /** A common table expression is reported like a table, but without a column. */
  #mayRead(name: string, column: string | null): boolean {
    if (this.#tables.has(name)) return true
    return column === '' && !this.#relations.has(name) && !/^(?:sqlite|pragma|tidemark)_/.test(name)
  }
}

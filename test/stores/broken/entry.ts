/** The modules that a broken store consists of, loaded together. */
export { openSqliteStore } from '../../../src/stores/sqlite/store.ts'
export { Connection } from '../../../src/stores/sqlite/connection.ts'

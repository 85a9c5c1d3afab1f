import { importPackage } from '../../values/import-package.ts'

export type Duckdb = typeof import('@duckdb/node-api')

/** Optional dependency, needed only for this destination. */
export function loadDuckdb(): Promise<Duckdb> {
  return importPackage('@duckdb/node-api', 'Writing to DuckDB needs', () => import('@duckdb/node-api'))
}

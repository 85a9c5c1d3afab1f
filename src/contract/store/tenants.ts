/** The tenants of a database, and the databases of a tenant. */
export interface TenantDirectory {
  /** The names of all tenants in this database, sorted. A query across tenants. */
  tenants(): Promise<string[]>
  /** The names only, sorted: cheap enough for every request. */
  databaseNames(): Promise<string[]>
}

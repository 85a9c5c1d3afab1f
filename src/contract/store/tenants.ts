/** The tenants of a database, and the databases of a tenant. */
export interface TenantDirectory {
  /** The names of all that this database knows, sorted: the one look beyond its own. */
  tenants(): Promise<string[]>
  /** Their names alone, in order: what a request can afford to ask. */
  databaseNames(): Promise<string[]>
}

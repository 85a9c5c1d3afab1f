import type { Connection } from '../contract/index.ts'

/** A connection as the API and the CLI show it: never its credentials. */
export type ConnectionDocument = ReturnType<typeof toConnectionDocument>

export function toConnectionDocument(connection: Connection) {
  const { name, provider, status, statusReason, settings, scopes, account, createdAt, updatedAt, version } = connection
  return {
    name,
    provider,
    status,
    statusReason,
    settings,
    scopes,
    account,
    createdAt: new Date(createdAt).toISOString(),
    updatedAt: new Date(updatedAt).toISOString(),
    version,
  }
}

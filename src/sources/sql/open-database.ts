import { SyncError, type SyncContext } from '../../contract/index.ts'
import { Secret } from '../../redaction/secret.ts'
import type { SqlDatabase } from './database.ts'

/** Each driver is loaded only when its database is used. */
export async function openDatabase(
  source: string | Secret,
  context: Pick<SyncContext, 'secrets' | 'signal'>,
): Promise<SqlDatabase> {
  const url = getDatabaseUrl(source, context)
  const { signal } = context
  switch (/^([a-z]+):/.exec(url)?.[1]) {
    case 'postgres':
    case 'postgresql': {
      const { openPostgres } = await import('./postgres.ts')
      return openPostgres(url, signal)
    }
    case 'mysql':
    case 'mariadb': {
      const { openMysql } = await import('./mysql.ts')
      return openMysql(url, signal)
    }
    case 'sqlite': {
      const { openSqlite } = await import('./sqlite.ts')
      return openSqlite(url.slice('sqlite:'.length))
    }
    default:
      throw new SyncError(
        'SYNC_INVALID',
        'The database URL has an unsupported scheme. Use postgres:, mysql:, mariadb: or sqlite:.',
      )
  }
}

/** A source that is not a URL is the name of a secret. */
export function getDatabaseUrl(source: string | Secret, { secrets }: Pick<SyncContext, 'secrets'>): string {
  if (source instanceof Secret) return source.reveal()
  return /^[a-z]+:/.test(source) ? source : secrets.get(source)
}

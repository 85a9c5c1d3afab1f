import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SyncError } from '../contract/index.ts'
import { maskUrl } from '../redaction/mask-url.ts'

/** Where the rows live. */
export type StoreLocation =
  | { readonly kind: 'sqlite'; readonly file: string }
  | { readonly kind: 'postgres'; readonly url: string }

/**
 * `sqlite:data/app.db`, `sqlite:/var/app.db`, `sqlite::memory:`, `file:///var/app.db`, `postgres://user@host/database`.
 * Throws STORE_URL_INVALID. A relative file belongs to `folder`.
 */
export function parseStoreUrl(url: string, folder: string): StoreLocation {
  const [, scheme = '', rest = ''] = /^([a-z]+):(.*)$/is.exec(url.trim()) ?? []
  switch (scheme.toLowerCase()) {
    case 'sqlite':
    case 'file':
      return { kind: 'sqlite', file: fileOf(url.trim(), rest, folder) }
    case 'postgres':
    case 'postgresql': {
      if (!rest.startsWith('//') || !URL.canParse(url.trim())) throw invalid(url, 'is not a complete PostgreSQL URL')
      return { kind: 'postgres', url: url.trim() }
    }
    case '':
      throw invalid(url, `has no scheme${url.trim() === '' ? '' : `; for a file write sqlite:${maskUrl(url.trim())}`}`)
    default:
      throw invalid(url, `names "${scheme}", which is no kind of store`)
  }
}

function fileOf(url: string, rest: string, folder: string): string {
  if (rest === ':memory:') return rest
  if (rest.includes('\0')) throw invalid(url, 'contains a NUL character')
  if (/^file:\/\//i.test(url)) {
    try {
      return fileURLToPath(url)
    } catch {
      throw invalid(url, 'is not a file URL of this machine')
    }
  }
  const path = rest.replace(/^\/\/(?=[^/]|\/)/, '')
  if (path === '' || path.endsWith('/')) throw invalid(url, 'names no file')
  return resolve(folder, path)
}

function invalid(url: string, what: string): SyncError {
  return new SyncError('STORE_URL_INVALID', `The store URL ${JSON.stringify(maskUrl(url))} ${what}.`)
}

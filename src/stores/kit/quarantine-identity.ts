import { hash } from 'node:crypto'

/**
 * One quarantine entry per rejected record, however often it is read: identified by its key, or by its text when it has
 * none.
 */
export function quarantineIdentityOf(item: { readonly key: string | null; readonly text?: string }): string {
  return item.key === null ? `text:${hash('sha1', item.text ?? '', 'hex')}` : `key:${item.key}`
}

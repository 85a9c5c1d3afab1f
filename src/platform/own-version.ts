import { readFileSync } from 'node:fs'

/** The version of the running package. */
export function ownVersion(): string {
  const manifest = new URL('../../package.json', import.meta.url)
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}

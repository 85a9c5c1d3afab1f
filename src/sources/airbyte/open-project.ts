import { resolve } from 'node:path'
import type { DiscoveredStream } from '../kit/define-source.ts'
import type { TokenStore } from '../kit/token-store.ts'
import { isComponent, texts } from './manifest/component.ts'
import { readManifest, type Manifest } from './manifest/manifest.ts'
import { checkSettings, requireSecretNames } from './settings.ts'
import { openManifest, type AirbyteSource } from './source.ts'
import type { AirbyteSettings } from './stream-options.ts'

/** The manifest of a project, whose secrets are names. */
export function openProject(
  path: string,
  settings: AirbyteSettings,
  folder: string,
  tokens: (account: string) => TokenStore,
): AirbyteSource & { discover(): DiscoveredStream[] } {
  const manifest = readManifest(resolve(folder, path))
  requireSecretNames(manifest, settings)
  const source = openManifest(manifest, checkSettings(manifest, settings), tokens)
  return { ...source, discover: () => listStreams(manifest, source) }
}

/** Streams that cannot be run are left out. */
export function listStreams({ streams }: Manifest, { problems }: AirbyteSource): DiscoveredStream[] {
  return streams
    .filter(({ name }) => !problems.has(name))
    .map(({ name, component }) => {
      const { primary_key: key, incremental_sync: cursor } = component
      const field = isComponent(cursor) && typeof cursor.cursor_field === 'string' ? cursor.cursor_field : undefined
      return {
        id: name,
        key: (typeof key === 'string' ? [key] : texts(key)).filter((part) => part !== ''),
        ...(field !== undefined && !field.includes('{{') && { cursor: field }),
        candidates: [],
      }
    })
}

import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { stringify } from 'yaml'
import { SyncError } from '../../contract/index.ts'
import { toVariable, writeEnvironment } from './project-environment.ts'
import type { ConnectorDescription, ConnectorField } from '../../sources/airbyte/describe-connector.ts'

/** Asks for a value. Returns undefined if the user leaves it out. */
export type AskField = (field: ConnectorField) => Promise<string | undefined>

export interface AirbyteProject {
  readonly written: readonly string[]
  readonly streams: readonly string[]
  readonly unsupported: ConnectorDescription['unsupported']
  /** Names in `.env` that have no value yet. */
  readonly missing: readonly string[]
}

/** Writes `tidemark.yaml` for a manifest of Airbyte, and the secrets to `.env`. */
export async function writeAirbyteProject(
  folder: string,
  manifest: string,
  options: { readonly given: Readonly<Record<string, string>>; readonly ask: AskField | null; readonly force: boolean },
): Promise<AirbyteProject> {
  const { describeConnector, validateSettings } = await import('../../sources/airbyte/describe-connector.ts')
  const target = join(folder, 'tidemark.yaml')
  if (existsSync(target) && !options.force)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${target} already exists. Nothing was written. Choose another folder, or add --force to overwrite.`,
    )
  const connector = describeConnector(manifest)
  if (connector.streams.length === 0)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `None of the streams of ${manifest} is supported. ${listReasons(connector)}`,
    )
  const prefix = toVariable(basename(folder === '.' ? resolve(folder) : folder), 'AIRBYTE')
  const secrets: Record<string, string> = {}
  const settings: Record<string, unknown> = {}
  for (const field of connector.fields) {
    const value = options.given[field.name] ?? (await options.ask?.(field))
    if (field.isSecret && (value !== undefined || field.isRequired)) {
      const name = `${prefix}_${toVariable(field.name, 'AIRBYTE')}`
      secrets[name] = value ?? ''
      settings[field.name] = `\${${name}}`
    } else if (value !== undefined) settings[field.name] = convert(value, field)
    else if (field.default !== undefined) settings[field.name] = field.default
    else if (field.isRequired)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `${manifest} requires \`${field.name}\` (${field.title}). Add --set ${field.name}=<value>. Nothing was written.`,
      )
  }
  validateSettings(manifest, settings as Record<string, string>)
  mkdirSync(folder, { recursive: true })
  const isInside = !relative(folder, manifest).startsWith('..')
  const path = isInside ? relative(folder, manifest) : 'manifest.yaml'
  if (!isInside) copyFileSync(manifest, join(folder, path))
  const document = {
    connector: 'airbyte',
    config: { manifest: path, settings },
    streams: connector.streams.map((id) => ({ id })),
  }
  writeFileSync(target, `${stringify(document)}${commentUnsupported(connector)}`)
  const written = ['tidemark.yaml', ...(isInside ? [] : [path]), ...writeEnvironment(folder, secrets)]
  const missing = Object.entries(secrets).flatMap(([name, value]) => (value === '' ? [name] : []))
  return { written, streams: connector.streams, unsupported: connector.unsupported, missing }
}

function convert(value: string, { type }: ConnectorField): unknown {
  if (type === 'string') return value
  try {
    return JSON.parse(value) as unknown
  } catch {
    return value
  }
}

function listReasons({ unsupported }: ConnectorDescription): string {
  return unsupported.map(({ reason }) => reason).join(' ')
}

function commentUnsupported({ unsupported }: ConnectorDescription): string {
  if (unsupported.length === 0) return ''
  const lines = unsupported.map(({ name, reason }) => `#   ${name}: ${reason.replaceAll('\n', ' ')}`)
  return `# Not supported:\n${lines.join('\n')}\n`
}

export function resolveManifest(folder: string, file: string): string {
  const path = resolve(folder, file)
  if (!existsSync(path))
    throw new SyncError('ARGUMENT_INVALID', `There is no file ${path}. Check the path of the manifest.`)
  return join(dirname(path), basename(path))
}

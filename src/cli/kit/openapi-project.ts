import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { SyncError } from '../../contract/index.ts'
import type { OpenApiPlan } from '../../sources/rest/openapi/plan.ts'
import { toVariable, writeEnvironment } from './project-environment.ts'
import { formatRestManifest } from './rest-manifest.ts'

export interface OpenApiProject {
  readonly written: readonly string[]
  readonly streams: ReadonlyArray<{
    readonly id: string
    readonly operation: string
    readonly notes: readonly string[]
  }>
  readonly leftOut: OpenApiPlan['leftOut']
  /** Facts of the whole API that the document does not state. */
  readonly notes: readonly string[]
  /** Names in `.env` that have no value yet. */
  readonly missing: readonly string[]
}

/** Writes `tidemark.yaml` for an OpenAPI document, and the names of its secrets to `.env`. */
export async function writeOpenApiProject(
  folder: string,
  file: string,
  { given, force }: { readonly given: Readonly<Record<string, string>>; readonly force: boolean },
): Promise<OpenApiProject> {
  const { readOpenApi } = await import('../../sources/rest/openapi/document.ts')
  const { planOpenApi } = await import('../../sources/rest/openapi/plan.ts')
  const target = join(folder, 'tidemark.yaml')
  if (existsSync(target) && !force)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${target} already exists. Nothing was written. Choose another folder, or add --force to overwrite.`,
    )
  const plan = planOpenApi(readOpenApi(file), given)
  if (plan.streams.length === 0)
    throw new SyncError(
      'ARGUMENT_INVALID',
      `No list could be derived from ${file}. ${listReasons(plan)} Nothing was written.`,
    )
  const prefix = toVariable(basename(resolve(folder)), 'API')
  const secrets = Object.fromEntries(plan.auth.secrets.map((name) => [toSecretName(prefix, name), given[name] ?? '']))
  mkdirSync(folder, { recursive: true })
  writeFileSync(target, formatManifest(plan, basename(file), prefix))
  return {
    written: ['tidemark.yaml', ...writeEnvironment(folder, secrets)],
    streams: plan.streams.map(({ id, operation, notes }) => ({ id, operation, notes })),
    leftOut: plan.leftOut,
    notes: [...plan.notes, ...plan.auth.notes],
    missing: Object.entries(secrets).flatMap(([name, value]) => (value === '' ? [name] : [])),
  }
}

function toSecretName(prefix: string, name: string): string {
  return `${prefix}_${name.toUpperCase()}`
}

function listReasons({ leftOut }: OpenApiPlan): string {
  const shown = leftOut.slice(0, 5).map(({ operation, reason }) => `${operation}: ${reason}.`)
  return [...shown, ...(leftOut.length > 5 ? [`${leftOut.length - 5} more.`] : [])].join(' ')
}

/** The same document gives the same text. */
function formatManifest(plan: OpenApiPlan, file: string, prefix: string): string {
  const auth =
    plan.auth.auth === null
      ? {}
      : {
          auth: Object.fromEntries(
            Object.entries(plan.auth.auth).map(([name, value]) => [name, toSecretReference(value, prefix)]),
          ),
        }
  return formatRestManifest({
    comments: [
      `Derived from ${file}${plan.title === '' ? '' : `: ${plan.title}`}. Check what the comments say.`,
      ...plan.notes,
      ...plan.auth.notes,
    ],
    config: { base_url: plan.baseUrl, ...auth },
    streams: plan.streams.map(({ operation, notes, ...stream }) => ({ ...stream, comments: [operation, ...notes] })),
    leftOut: plan.leftOut.map(({ operation, reason }) => `  ${operation}: ${reason}`),
  })
}

function toSecretReference(value: unknown, prefix: string): unknown {
  const name = typeof value === 'string' ? /^\$\{(\w+)\}$/.exec(value)?.[1] : undefined
  return name === undefined ? value : `\${${prefix}_${name}}`
}

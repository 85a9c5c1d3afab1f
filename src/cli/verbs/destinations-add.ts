import { readFileSync, realpathSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { addToEnvFile } from '../../config/env-file.ts'
import type { ManifestDestination } from '../../config/manifest/manifest-file.ts'
import { checkName } from '../../config/names.ts'
import { withEnvFile } from '../../config/settings.ts'
import { SyncError, type DestinationMode } from '../../contract/index.ts'
import type { DestinationDescriptor } from '../../destinations/kit/define-destination.ts'
import { DESTINATIONS, type DestinationName } from '../../destinations/registry.ts'
import { registerNamedSecret } from '../../redaction/known-secrets.ts'
import { didYouMean } from '../../values/did-you-mean.ts'
import { required } from '../../values/required.ts'
import type { DeclaredDestination } from '../../worker/destination-options.ts'
import { isManifest } from '../../worker/load-worker.ts'
import type { Cli, VerbAction } from '../cli.ts'
import { parseList } from '../kit/arguments.ts'
import { buildDestinationConfig, isSecret, type PromptForField } from '../kit/destination-config.ts'
import { formatDestinationCode } from '../kit/destination-code.ts'
import { toPrintable } from '../kit/printable.ts'
import { loadWorkerTarget, printTarget, targetDocument, withStoreFlags, type TargetFlags } from '../kit/target.ts'

interface AddFlags extends TargetFlags {
  readonly set?: readonly string[]
  readonly databases?: readonly string[]
  readonly mode?: DestinationMode
  readonly schedule?: string
  readonly dryRun?: boolean
}

export function destinationsAddVerb(): Command {
  return withStoreFlags(new Command('add'))
    .summary('add a destination to the project')
    .description(
      'Tests the connection to a new destination and adds it to tidemark.yaml; secrets go to .env. For a worker file, it prints the lines to add. On a terminal it asks for missing settings.',
    )
    .argument('<kind>', `the system: ${Object.keys(DESTINATIONS).join(', ')}`)
    .argument('<name>', 'the name of the new destination')
    .option('--set <key=value>', 'set an option of the destination; repeatable', collectPair)
    .option('--databases <names>', 'the databases to copy (default: all)', parseList)
    .addOption(
      new Option('--mode <mode>', 'the rows to store (default: mirror)').choices(['mirror', 'append', 'history']),
    )
    .option('--schedule <schedule>', 'continuous, manual or an interval such as 1h (default: continuous)')
    .option('--dry-run', 'show the change without connecting or writing')
}

export const destinationsAdd: VerbAction<[string, string, AddFlags]> = async (cli, kind, name, flags) => {
  const descriptor = findDescriptor(kind)
  checkName('destination', name)
  const target = await loadWorkerTarget(cli, flags)
  const declared = target.worker.destinations?.() ?? []
  if (declared.some((one) => one.name === name))
    throw new SyncError('NAME_TAKEN', `${target.file} already has a destination ${name}. Nothing was changed.`)
  printTarget(cli, target)
  const path = resolve(cli.folder, target.file)
  const folder = dirname(path)
  const environment = withEnvFile(cli.environment, folder)
  const isSet = (variable: string): boolean => (environment[variable] ?? '') !== ''
  const prompt = process.stdin.isTTY && cli.terminal.isInteractive ? promptForField : null
  const { config, secrets } = await buildDestinationConfig(descriptor, name, flags.set ?? [], isSet, prompt)
  for (const [variable, value] of Object.entries(secrets)) {
    registerNamedSecret(variable, value)
    if (cli.environment[variable] !== undefined && cli.environment[variable] !== value)
      throw new SyncError(
        'ARGUMENT_INVALID',
        `${variable} has another value in the environment, which takes precedence over .env. Nothing was changed.`,
      )
  }
  const entry: ManifestDestination = {
    name,
    connector: descriptor.name as DestinationName,
    config,
    ...(flags.databases !== undefined && { databases: flags.databases }),
    ...(flags.mode !== undefined && { mode: flags.mode }),
    ...(flags.schedule !== undefined && { schedule: flags.schedule }),
  }
  const { addDestination } = await import('../../config/manifest/add-destination.ts')
  const { buildWorker } = await import('../../config/manifest/manifest.ts')
  const { createDestination } = await import('../../config/manifest/create-destination.ts')
  const filled = { ...environment, ...secrets }
  const changes: Array<{ readonly file: string; readonly text: string }> = []
  let plan: DeclaredDestination
  if (isManifest(path)) {
    const text = addDestination(readFileSync(path, 'utf8'), entry)
    const worker = await buildWorker(path, target.file, filled, text)
    plan = required(
      worker.destinations().find((one) => one.name === name),
      'The new destination',
    )
    if (Object.keys(secrets).length > 0)
      changes.push({ file: join(folder, '.env'), text: addToEnvFile(readIfPresent(join(folder, '.env')), secrets) })
    changes.push({ file: path, text })
  } else {
    const databases = target.worker.manifest.databases.map((database) => database.name)
    plan = await createDestination(entry, databases, filled, folder)
  }
  if (flags.dryRun !== true) {
    await testConnection(cli, plan, target.tenant)
    for (const { file, text } of changes) replaceFile(file, text)
  }
  const written = changes.map(({ file }) => relative(cli.folder, file))
  const code = isManifest(path) ? null : formatDestinationCode(entry)
  if (cli.terminal.json)
    return cli.terminal.printDocument({
      ...targetDocument(target),
      destination: name,
      kind: plan.destination.kind,
      location: plan.destination.location,
      mode: plan.mode,
      databases: plan.databases,
      dryRun: flags.dryRun === true,
      written: flags.dryRun === true ? [] : written,
      variables: Object.keys(secrets),
      code,
    })
  cli.terminal.print(...describe(plan, { dryRun: flags.dryRun === true, written, code, file: target.file, secrets }))
}

function collectPair(pair: string, earlier: readonly string[] = []): string[] {
  return [...earlier, pair]
}

function findDescriptor(kind: string): DestinationDescriptor {
  const known: Readonly<Record<string, DestinationDescriptor>> = DESTINATIONS
  const found = Object.hasOwn(known, kind) ? known[kind] : undefined
  if (found !== undefined) return found
  const names = Object.keys(DESTINATIONS)
  throw new SyncError(
    'ARGUMENT_INVALID',
    `There is no destination ${JSON.stringify(kind)}; there are ${names.join(', ')}.${didYouMean(kind, names)}`,
  )
}

/** Imports the prompt library only on a terminal. */
const promptForField: PromptForField = async (field, schema) => {
  const { isCancel, password, select, text } = await import('@clack/prompts')
  const message = typeof schema['description'] === 'string' && !isSecret(schema) ? schema['description'] : field
  const options = (schema['enum'] as readonly string[] | undefined)?.map((value) => ({ value, label: value }))
  const answer = isSecret(schema)
    ? await password({ message })
    : options !== undefined
      ? await select({ message, options })
      : await text({ message })
  if (isCancel(answer)) throw new SyncError('CANCELLED', 'No value was given. Nothing was changed.')
  return answer ?? ''
}

/** Connects, and reads the position of every database. */
async function testConnection(
  cli: Cli,
  { destination, databases }: DeclaredDestination,
  tenant: string,
): Promise<void> {
  const session = await destination.open({ tenant, signal: cli.listenForStop() })
  try {
    for (const database of databases) await session.position(database)
  } finally {
    await session.close()
  }
}

function readIfPresent(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

/** The old file stays until the new one is complete. A new `.env` is for its owner only. */
function replaceFile(file: string, text: string): void {
  const found = statSync(file, { throwIfNoEntry: false })
  const path = found === undefined ? file : realpathSync(file)
  const temporary = `${path}.new`
  writeFileSync(temporary, text, { mode: found?.mode ?? 0o600 })
  renameSync(temporary, path)
}

function describe(
  { name, destination: { location }, databases }: DeclaredDestination,
  given: {
    readonly dryRun: boolean
    readonly written: readonly string[]
    readonly code: string | null
    readonly file: string
    readonly secrets: Readonly<Record<string, string>>
  },
): string[] {
  const names = Object.keys(given.secrets)
  const place = toPrintable(location)
  if (given.code !== null)
    return [
      given.dryRun ? `${name} would be ${place}.` : `Connected to ${place}.`,
      `Add these lines to ${given.file}, before its \`export default\`:`,
      '',
      ...given.code.split('\n').map((line) => `  ${line}`),
      '',
      ...(names.length === 0 ? [] : [`Set ${names.join(', ')} in .env.`]),
    ]
  if (given.dryRun)
    return [
      `This would add ${name}, ${place}, to ${given.written.join(' and ')}. Nothing was changed.`,
      `Databases: ${databases.join(', ')}`,
    ]
  return [
    `Connected to ${place}. Added ${name} to ${given.written.join(' and ')}.`,
    `\`tidemark destinations run ${name}\` loads ${databases.join(', ')}; \`tidemark start\` keeps it current.`,
  ]
}

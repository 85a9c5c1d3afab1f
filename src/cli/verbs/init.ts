import { Command, Option } from 'commander'
import { basename, relative, resolve } from 'node:path'
import { toValidName } from '../../config/names.ts'
import { SyncError } from '../../contract/index.ts'
import { systemClock } from '../../platform/clock.ts'
import type { ConnectorField } from '../../sources/airbyte/describe-connector.ts'
import type { VerbAction, Cli } from '../cli.ts'
import { resolveManifest, writeAirbyteProject } from '../kit/airbyte-project.ts'
import { SIMULATORS_PACKAGE } from '../kit/import-simulators.ts'
import { INIT_SOURCES, type InitSource, type InitSourceName } from '../kit/init-sources.ts'
import { isoTime } from '../kit/json-document.ts'
import { writeOpenApiProject } from '../kit/openapi-project.ts'
import { findPackage, linkPackage } from '../kit/own-package.ts'
import { toPrintable } from '../kit/printable.ts'
import { readTemplate, usesSimulators, writeProject } from '../kit/project-files.ts'

interface InitFlags {
  readonly source?: InitSourceName
  readonly yes?: boolean
  readonly force?: boolean
  readonly airbyte?: string
  readonly openapi?: string
  readonly set?: readonly string[]
}

export function initVerb(): Command {
  return new Command('init')
    .summary('create a worker project')
    .description(
      'Creates a worker project for a source. On a terminal it asks which source to use. The project runs immediately against simulated data, without an account or a network, and against the real source once its key is in .env.',
    )
    .argument('[dir]', 'the folder to create it in', '.')
    .addOption(new Option('--source <name>', 'the source to read from').choices(Object.keys(INIT_SOURCES)))
    .addOption(
      new Option('--airbyte <manifest>', 'write tidemark.yaml for an Airbyte manifest').conflicts([
        'openapi',
        'source',
      ]),
    )
    .addOption(
      new Option('--openapi <file>', 'write tidemark.yaml for an OpenAPI document').conflicts(['airbyte', 'source']),
    )
    .addOption(
      new Option('--set <field=value>', 'a setting or parameter of the manifest (repeatable)').argParser(
        (value: string, before: readonly string[] | undefined) => [...(before ?? []), value],
      ),
    )
    .option('--yes', 'do not prompt; the default source is built into the worker')
    .option('--force', 'overwrite existing files')
    .option('--json', 'print JSON')
}

export const init: VerbAction<[string, InitFlags]> = async (cli, dir, flags) => {
  const folder = resolve(cli.folder, dir)
  if (flags.airbyte !== undefined) return initAirbyte(cli, folder, flags.airbyte, flags)
  if (flags.openapi !== undefined) return initOpenApi(cli, folder, flags.openapi, flags)
  const name =
    flags.source ??
    (flags.yes !== true && process.stdin.isTTY && cli.terminal.isInteractive ? await promptForSource() : 'harbour')
  const source = INIT_SOURCES[name]
  const own = findPackage(folder)
  const templates = name === 'harbour' ? ['worker'] : ['worker', `sources/${name}`]
  const packages = {
    ...source.packages,
    ...(templates.some(usesSimulators) && { [SIMULATORS_PACKAGE]: own.simulators }),
  }
  const files = readTemplate(
    templates,
    templateValues({ ...source, packages }, toValidName(basename(folder)).toLowerCase(), own.dependency),
  )
  const { written, kept, clashing } = writeProject(folder, files, flags.force === true)
  if (clashing.length > 0) {
    throw new SyncError(
      'ARGUMENT_INVALID',
      `${folder} already has ${clashing.join(', ')}. Nothing was written. Choose another folder, or add --force to overwrite.`,
    )
  }
  const linked = own.checkout !== null && linkPackage(own.checkout, folder)
  // A linked checkout already has the simulators and the dev packages.
  const needsInstall =
    source.packages !== undefined ||
    (!linked && (!own.runsHere || Object.keys(packages).length > 0 || source.devPackages !== undefined))
  const { terminal } = cli
  if (terminal.json) terminal.printDocument({ folder, source: name, written, kept, dependency: own.dependency, linked })
  else printSummary(cli, source, { cd: relative(cli.folder, folder), written, kept, needsInstall })
}

async function initAirbyte(cli: Cli, folder: string, file: string, flags: InitFlags): Promise<void> {
  const isAsked = flags.yes !== true && process.stdin.isTTY && cli.terminal.isInteractive
  const project = await writeAirbyteProject(folder, resolveManifest(cli.folder, file), {
    given: readSettings(flags.set ?? []),
    ask: isAsked ? promptForField : null,
    force: flags.force === true,
  })
  const { terminal } = cli
  if (terminal.json) {
    terminal.printDocument({ folder, source: 'airbyte', ...project })
    return
  }
  terminal.print(
    `Created ${project.written.join(', ')} for ${project.streams.length} streams.`,
    ...project.unsupported.map(({ reason }) => toPrintable(reason)),
    '',
    ...formatNextSteps(relative(cli.folder, folder), project.missing),
  )
}

async function initOpenApi(cli: Cli, folder: string, file: string, flags: InitFlags): Promise<void> {
  const project = await writeOpenApiProject(folder, resolve(cli.folder, file), {
    given: readSettings(flags.set ?? []),
    force: flags.force === true,
  })
  const { terminal } = cli
  if (terminal.json) {
    terminal.printDocument({ folder, source: 'rest', ...project })
    return
  }
  const unknown = [
    ...project.notes,
    ...project.streams.flatMap(({ id, notes }) => notes.map((note) => `${id}: ${note}`)),
    ...project.leftOut.map(({ operation, reason }) => `left out ${operation}: ${reason}`),
  ]
  terminal.print(`Created ${project.written.join(', ')} for ${project.streams.length} streams.`)
  if (unknown.length > 0)
    terminal.print('', 'The document does not state everything:', ...unknown.map((line) => `  ${toPrintable(line)}`))
  terminal.print('', ...formatNextSteps(relative(cli.folder, folder), project.missing))
}

function formatNextSteps(cd: string, missing: readonly string[]): string[] {
  return [
    ...(cd === '' ? [] : [`cd ${cd}`]),
    ...(missing.length === 0 ? [] : [`set ${missing.join(', ')} in .env`]),
    'npx tidemark run',
  ].map((line) => `  ${line}`)
}

function readSettings(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=')
      if (at < 1) throw new SyncError('ARGUMENT_INVALID', 'A setting is written as --set <field>=<value>.')
      return [pair.slice(0, at), pair.slice(at + 1)]
    }),
  )
}

async function promptForField(field: ConnectorField): Promise<string | undefined> {
  const { isCancel, password, text } = await import('@clack/prompts')
  const message = `${field.title}${field.isRequired ? '' : ' (optional)'}`
  const shown = field.default === undefined ? {} : { placeholder: JSON.stringify(field.default) }
  const answer = field.isSecret ? await password({ message }) : await text({ message, ...shown })
  if (isCancel(answer)) throw new SyncError('CANCELLED', 'The settings were not given. Nothing was written.')
  return answer === undefined || answer === '' ? undefined : answer
}

/** Imports the prompt library only on a terminal. */
async function promptForSource(): Promise<InitSourceName> {
  const { isCancel, select } = await import('@clack/prompts')
  const options = Object.entries(INIT_SOURCES).map(([value, { label }]) => ({ value: value as InitSourceName, label }))
  const answer = await select({ message: 'What do you want a copy of?', options, maxItems: 12 })
  if (isCancel(answer)) throw new SyncError('CANCELLED', 'No source was chosen. Nothing was written.')
  return answer
}

function templateValues(source: InitSource, name: string, dependency: string): Record<string, string> {
  const { database, sync, settings, packages = {}, devPackages } = source
  return {
    first: describeNextStep(source),
    name,
    dependency,
    database,
    sync,
    key: database === 'vessels' ? 'V001' : '<key>',
    now: isoTime(Math.floor(systemClock.now() / 1_000) * 1_000),
    settings:
      Object.entries(settings)
        .map(([setting, what]) => `# ${what}\n# ${setting}=`)
        .join('\n') || '# This source needs no settings.',
    packages: packageLines(packages)
      .map((line) => `,${line}`)
      .join(''),
    devDependencies:
      devPackages === undefined ? '' : `,\n  "devDependencies": {${packageLines(devPackages).join(',')}\n  }`,
  }
}

function packageLines(packages: Readonly<Record<string, string>>): string[] {
  return Object.entries(packages).map(([name, version]) => `\n    "${name}": "${version}"`)
}

interface InitSummary {
  /** The project folder relative to the working directory; empty if they are the same. */
  readonly cd: string
  readonly written: readonly string[]
  readonly kept: readonly string[]
  readonly needsInstall: boolean
}

/** Says what the project reads now, and how to connect the real source. */
function describeNextStep({ database, settings, simulated, until }: InitSource): string {
  const last = Object.keys(settings).at(-1)
  if (database === 'vessels') return 'Next, point worker.ts at your API; its comments show where.'
  if (last === undefined) return 'worker.ts defines what is read and how often.'
  return `It reads ${simulated} until ${until ?? `${last} is set in .env (see .env.example), then the real one`}. Start with an empty store then: rm -r .tidemark`
}

function printSummary({ terminal }: Cli, source: InitSource, { cd, written, kept, needsInstall }: InitSummary): void {
  terminal.print(
    `Created a worker project in ${cd === '' ? 'this folder' : cd}: ${written.join(', ')}${kept.length === 0 ? '' : ` (kept: ${kept.join(', ')})`}`,
    '',
    ...[
      ...(cd === '' ? [] : [`cd ${cd}`]),
      ...(needsInstall ? ['npm install'] : []),
      'npx tidemark run                                     # run it again later: it finds the changes since',
      `npx tidemark query "select * from ${source.database} limit 5"`,
      'npx tidemark status',
    ].map((line) => `  ${line}`),
    '',
    describeNextStep(source),
  )
}
